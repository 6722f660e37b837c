"""Blocking USB calls as coroutines on a virtual clock: what a thread of the daemon would do, without the thread."""

from fakes.transfers import Transfer

__all__ = ["Call", "Task"]


class Call:
    """A transfer to wait for, at most `timeout_s`; `submit(transfer)` starts it, `cancel(transfer)` gives it up."""

    def __init__(self, submit, cancel, timeout_s, **fields):
        self.timeout_s = timeout_s
        self.cancel = cancel
        self.transfer = Transfer(fields.pop("endpoint", 0), on_done=self._done, **fields)
        self._resume = None
        self._submit = submit

    def start(self, resume):
        """Submits; True if the result is there already, else `resume()` is called later."""
        self._submit(self.transfer)
        if self.transfer.done:
            return True
        self._resume = resume
        return False

    def _done(self, _transfer):
        if self._resume is not None:
            self._resume()


class Task:
    """Runs a generator that yields seconds to sleep or Calls to wait for; it gets the finished Transfer back."""

    def __init__(self, clock, generator):
        self._clock = clock
        self._generator = generator
        self._timer = None
        self._call = None
        self.ended = False
        self._step(None)

    def stop(self):
        """Ends the task where it waits."""
        if self.ended:
            return
        self.ended = True
        self._cancel_timer()
        call, self._call = self._call, None
        if call is not None:
            call.cancel(call.transfer)
        self._generator.close()

    def _cancel_timer(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _step(self, value):
        while not self.ended:
            try:
                want = self._generator.send(value)
            except StopIteration:
                self.ended = True
                return
            if not isinstance(want, Call):
                self._timer = self._clock.call_later(want, lambda: self._step(None))
                return
            self._call = want
            if not want.start(self._resume):
                self._timer = self._clock.call_later(want.timeout_s, self._timeout)
                return
            self._call = None
            value = want.transfer

    def _timeout(self):
        call = self._call
        if call is not None:
            self._timer = None
            call.cancel(call.transfer)  # its end resumes the task

    def _resume(self):
        call, self._call = self._call, None
        self._cancel_timer()
        if call is not None and not self.ended:
            self._clock.call_later(0.0, lambda: self._step(call.transfer))

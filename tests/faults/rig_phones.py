"""The talking phones with the items of a campaign: ``move`` (to another socket), ``halt`` (endpoints stall)."""

import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rig import talking_phone
from rig.talking_phone import TalkingRig


class CampaignRig(TalkingRig):
    """As TalkingRig."""

    def _do_move(self, phone, at):
        """The socket of the next plug; the phone must be unplugged."""
        phone.profile = dataclasses.replace(phone.profile, at=at)

    def _do_cut(self, phone, step, byte, gap_s):
        """As the base; a phone that is just switching is unplugged at once."""
        if phone.function is not None:
            super()._do_cut(phone, step, byte, gap_s)
        else:
            phone.unplug()
            self.clock.call_later(gap_s, phone.plug)

    def _do_cut_now(self, phone, gap_s):
        """The transfer to cut did not come."""
        function = phone.function
        for pipe in (function.in_, function.out) if function is not None else ():
            pipe.cut = None
        if phone.plugged:
            phone.unplug()
            self.clock.call_later(gap_s, phone.plug)

    def _do_halts_left(self, phone):
        """Halts that no transfer has met yet."""
        function = phone.function
        return 0 if function is None else sum(pipe.halts_left for pipe in (function.in_, function.out))

    def _do_halt(self, phone):
        """Both endpoints answer STALL until the host clears the halt."""
        function = phone.function
        for pipe in (function.in_, function.out) if function is not None else ():
            pipe.halts_left = 1
            pipe.arm_halts()


if __name__ == "__main__":
    talking_phone.TalkingRig = CampaignRig
    talking_phone.main()

"use strict";
// The server renders; this swaps in what has changed, counts ages on, and says when contact is lost.
(() => {
  const main = document.getElementById("page");
  const contact = document.getElementById("contact");
  const panel = document.getElementById("panel");
  const SILENCE_MS = 2000;
  const RECONNECT_MS = 5000;
  const STALE_S = 2;
  const MAX_LOG_LINES = 500;
  let heard = performance.now();
  let heardAt = new Date();
  let retry = 1000;
  let dialled = 0;
  let logLines = null;
  let shown = [...main.children].map((part) => part.outerHTML);

  const duration = (s) => {
    if (s < 10) return s.toFixed(1) + " s";
    if (s < 60) return s.toFixed(0) + " s";
    const two = (n) => String(Math.floor(n)).padStart(2, "0");
    return two(s / 3600) + ":" + two((s / 60) % 60) + ":" + two(s % 60);
  };

  // The live region stays the same element, so that a screen reader announces a changed verdict and nothing else.
  const patchVerdict = (old, fresh) => {
    old.className = fresh.className;
    const [before, after] = [old.firstElementChild, fresh.firstElementChild];
    if (before.textContent !== after.textContent) before.replaceChildren(...after.childNodes);
    while (before.nextSibling) before.nextSibling.remove();
    while (after.nextSibling) old.append(after.nextSibling);
  };

  const show = (html, title) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    const parts = [...template.content.children];
    const now = parts.map((part) => part.outerHTML);
    parts.forEach((part, index) => {
      const old = main.children[index];
      if (!old) main.append(part);
      else if (now[index] === shown[index]) return;
      else if (old.id === "verdict" && part.id === "verdict") patchVerdict(old, part);
      else old.replaceWith(part);
    });
    while (main.children.length > now.length) main.lastElementChild.remove();
    shown = now;
    document.title = title;
  };

  const lineText = (l) => l.time + "  " + l.level.toUpperCase() + "  " + l.text;

  const showLog = (lines) => {
    logLines = logLines.concat(lines.map(lineText)).slice(-MAX_LOG_LINES);
    panel.textContent = logLines.join("\n");
  };

  const connect = () => {
    const mine = ++dialled;
    const socket = new WebSocket("ws://" + location.host + "/ws");
    socket.onmessage = (event) => {
      if (mine !== dialled) return;
      heard = performance.now();
      heardAt = new Date();
      retry = 1000;
      const message = JSON.parse(event.data);
      if (message.html) show(message.html, message.title);
      if (message.type === "log" && logLines) showLog(message.lines);
    };
    const again = () => {
      if (mine !== dialled) return;
      dialled++;
      socket.close();
      setTimeout(connect, retry);
      retry = Math.min(RECONNECT_MS, retry * 2);
    };
    socket.onclose = again;
    // A cable that was pulled ends no connection: without news for long, dial anew.
    const watch = setInterval(() => {
      if (mine !== dialled) clearInterval(watch);
      else if (performance.now() - heard > RECONNECT_MS) again();
    }, RECONNECT_MS);
  };

  setInterval(() => {
    const silent = performance.now() - heard > SILENCE_MS;
    document.body.classList.toggle("lost", silent);
    contact.hidden = !silent;
    const lost = "X NO CONTACT WITH BRIDGE, values from " + heardAt.toTimeString().slice(0, 8);
    if (silent && contact.textContent !== lost) contact.textContent = lost;
    const passed = (performance.now() - heard) / 1000;
    for (const since of document.querySelectorAll("[data-since]")) {
      since.textContent = duration(Number(since.dataset.since) + passed);
    }
    for (const age of document.querySelectorAll("[data-age]")) {
      const now = Number(age.dataset.age) + passed;
      age.textContent = duration(now);
      age.classList.toggle("old", now >= STALE_S);
    }
  }, 500);

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-panel]");
    if (!link) return;
    event.preventDefault();
    panel.hidden = false;
    logLines = null;
    try {
      const data = await (await fetch(link.dataset.panel)).json();
      if (data.lines) {
        logLines = [];
        showLog(data.lines);
      } else panel.textContent = JSON.stringify(data, null, 1);
    } catch (error) {
      panel.textContent = "no answer: " + error.message;
    }
    panel.scrollIntoView();
  });

  connect();
})();

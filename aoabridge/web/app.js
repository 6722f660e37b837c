"use strict";
// The server renders; this only swaps in newer bodies, counts ages on, and says when contact is lost.
(() => {
  const main = document.getElementById("page");
  const contact = document.getElementById("contact");
  const panel = document.getElementById("panel");
  const SILENCE_MS = 2000;
  const STALE_S = 2;
  let heard = performance.now();
  let heardAt = new Date();
  let retry = 1000;
  let said = document.querySelector("[role=status]").textContent;

  const duration = (s) => {
    if (s < 10) return s.toFixed(1) + " s";
    if (s < 60) return s.toFixed(0) + " s";
    const two = (n) => String(Math.floor(n)).padStart(2, "0");
    return two(s / 3600) + ":" + two((s / 60) % 60) + ":" + two(s % 60);
  };

  const show = (html, title) => {
    const focused = document.activeElement && document.activeElement.dataset.panel;
    main.innerHTML = html;
    const status = main.querySelector("[role=status]");
    // Only a changed verdict is announced by a screen reader.
    if (status.textContent === said) status.removeAttribute("role");
    else said = status.textContent;
    document.title = title;
    if (focused) {
      const again = [...main.querySelectorAll("[data-panel]")].find((a) => a.dataset.panel === focused);
      if (again) again.focus();
    }
  };

  const connect = () => {
    const socket = new WebSocket("ws://" + location.host + "/ws");
    socket.onmessage = (event) => {
      heard = performance.now();
      heardAt = new Date();
      retry = 1000;
      const message = JSON.parse(event.data);
      if (message.html) show(message.html, message.title);
    };
    socket.onclose = () => {
      setTimeout(connect, retry);
      retry = Math.min(5000, retry * 2);
    };
  };

  setInterval(() => {
    const silent = performance.now() - heard > SILENCE_MS;
    document.body.classList.toggle("lost", silent);
    contact.hidden = !silent;
    if (silent) contact.textContent = "X NO CONTACT WITH BRIDGE, values from " + heardAt.toTimeString().slice(0, 8);
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
    const answer = await fetch(link.dataset.panel);
    const data = await answer.json();
    panel.hidden = false;
    panel.textContent = data.lines
      ? data.lines.map((l) => l.time + "  " + l.level.toUpperCase() + "  " + l.text).join("\n")
      : JSON.stringify(data, null, 1);
  });

  connect();
})();

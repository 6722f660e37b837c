// Drives one headless Chromium: a command per line of standard input, its result as one line of JSON.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(modules + "/")("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const WIDE = { width: 1280, height: 720 };
const SMALL = { width: 360, height: 640 };
let live = null;

const text = (page, selector) => page.locator(selector).innerText();

// Runs in the page: contrast of every visible text, and what assistive technology would find.
const examine = () => {
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.tagName === "SCRIPT") continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(style.color).slice(0, 3)), luminance(backgroundOf(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) poor.push([walker.currentNode.data, style.color, ratio]);
  }
  const nameless = [...document.querySelectorAll("a, button, input")].filter(
    (e) => !(e.innerText || e.getAttribute("aria-label") || "").trim(),
  ).length;
  return {
    poor,
    nameless,
    lang: document.documentElement.lang,
    status: document.querySelectorAll("[role=status]").length,
    headings: [...document.querySelectorAll("h1, h2")].map((e) => e.tagName + " " + e.innerText),
    background: getComputedStyle(document.body).backgroundColor,
  };
};

const layout = () => {
  const bottom = (selector) => document.querySelector(selector)?.getBoundingClientRect().bottom ?? 0;
  const root = document.documentElement;
  return {
    height: root.scrollHeight,
    width: root.scrollWidth,
    verdict: parseFloat(getComputedStyle(document.querySelector("[role=status]")).fontSize),
    verdictBottom: bottom("#verdict"),
    chainBottom: bottom("#chain"),
  };
};

const open = async (url, options = {}) => {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: "light", ...options });
  const page = await context.newPage();
  const seen = { errors: [], requests: [], messages: 0 };
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (line) => ["error", "warning"].includes(line.type()) && seen.errors.push(line.text()));
  page.on("request", (request) => seen.requests.push(request.url()));
  const first = new Promise((resolve) => {
    page.on("websocket", (socket) => {
      seen.requests.push(socket.url());
      socket.on("framereceived", () => {
        seen.messages++;
        resolve();
      });
    });
  });
  await page.goto(url);
  return { context, page, seen, first };
};

const tabs = async (page, count) => {
  const found = [];
  for (let n = 0; n < count; n++) {
    await page.keyboard.press("Tab");
    found.push(await page.evaluate(() => document.activeElement.innerText));
  }
  return found;
};

const commands = {
  // Everything about one page.
  async visit({ url, image }) {
    const { context, page, seen, first } = await open(url);
    await first;
    const result = { title: await page.title(), verdict: await text(page, "[role=status]"), wide: await page.evaluate(layout) };
    result.light = await page.evaluate(examine);
    if (image) await page.screenshot({ path: image });
    await page.emulateMedia({ colorScheme: "dark" });
    result.dark = await page.evaluate(examine);
    await page.setViewportSize(SMALL);
    result.small = await page.evaluate(layout);
    await page.setViewportSize({ width: WIDE.width / 2, height: WIDE.height / 2 });
    result.zoomed = await page.evaluate(layout);
    result.images = await page.locator("img").count();
    result.text = await text(page, "main");
    const plain = await open(url, { javaScriptEnabled: false });
    result.withoutScript = await text(plain.page, "[role=status]");
    await plain.context.close();
    await context.close();
    return { ...result, ...seen, requests: [...seen.requests, ...plain.seen.requests] };
  },
  // The links by keyboard alone.
  async keyboard({ url }) {
    const { context, page, first } = await open(url);
    await first;
    const order = await tabs(page, 3);
    await page.keyboard.press("Enter");
    await page.locator("#panel").waitFor();
    await page.waitForFunction(() => document.getElementById("panel").textContent.length > 2);
    const panel = await text(page, "#panel");
    // Updates must not take the focus away.
    await page.waitForTimeout(1200);
    const focused = await page.evaluate(() => document.activeElement.innerText);
    await context.close();
    return { order, panel, focused };
  },
  // How many messages come in a second.
  async rate({ url, seconds }) {
    const { context, page, seen, first } = await open(url);
    await first;
    const before = seen.messages;
    await page.waitForTimeout(seconds * 1000);
    const count = seen.messages - before;
    await context.close();
    return { count };
  },
  // A page that stays open for `expect` and `changes`.
  async watch({ url }) {
    live = await open(url);
    await live.first;
    await live.page.evaluate(() => {
      window.said = [];
      const region = document.querySelector("[role=status]");
      new MutationObserver(() => window.said.push(region.textContent)).observe(region, {
        childList: true,
        characterData: true,
        subtree: true,
      });
    });
    return {};
  },
  async expect({ selector, contains, hidden, seconds }) {
    const began = Date.now();
    const locator = live.page.locator(selector, contains ? { hasText: contains } : {});
    await locator.waitFor({ state: hidden ? "hidden" : "visible", timeout: seconds * 1000 });
    return { seconds: (Date.now() - began) / 1000, text: hidden ? "" : await locator.innerText() };
  },
  async announced() {
    return { said: await live.page.evaluate(() => window.said) };
  },
  async close() {
    await live.context.close();
    return live.seen;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await commands[command](rest) };
  } catch (error) {
    answer = { error: String(error.stack) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();

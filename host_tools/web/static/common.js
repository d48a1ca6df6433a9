// What both pages use: texts, elements made without HTML, money, dice, and the stream of views.

const held = JSON.parse(document.getElementById("page").textContent);
export const page = held;

export function say(key, values = {}) {
  let text = held.texts[key] ?? key;
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`{${name}}`, String(value));
  return text;
}

// An element; text goes in as text, so nothing that anybody typed is ever read as HTML.
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && typeof value === "boolean") made[key] = value;
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const whole = new Intl.NumberFormat(held.lang === "es" ? "es-PR" : "en-US", {
  style: "currency", currency: "USD", maximumFractionDigits: 0,
});
const cents = new Intl.NumberFormat(held.lang === "es" ? "es-PR" : "en-US", { style: "currency", currency: "USD" });

export function money(value, signed = false) {
  const text = (value % 100 ? cents : whole).format(Math.abs(value) / 100);
  return (value < 0 ? "−" : signed && value > 0 ? "+" : "") + text;
}

const SPOTS = {
  1: [[0, 0]],
  2: [[-1, -1], [1, 1]],
  3: [[-1, -1], [0, 0], [1, 1]],
  4: [[-1, -1], [1, -1], [-1, 1], [1, 1]],
  5: [[-1, -1], [1, -1], [0, 0], [-1, 1], [1, 1]],
  6: [[-1, -1], [1, -1], [-1, 0], [1, 0], [-1, 1], [1, 1]],
};

// A die: rounded and light; the dragon's eye die has eight corners, a second frame and is dark, an eye over it.
export function die(value, isEye, number) {
  const label = value ? say(isEye ? "eye_die" : "die", { n: number, value }) : say("covered");
  const drawing = svg("svg", {
    viewBox: isEye ? "-54 -78 108 132" : "-54 -54 108 108", class: isEye ? "die eye" : "die", role: "img",
    "aria-label": label,
  });
  if (isEye) {
    drawing.append(
      svg("path", { class: "lid", d: "M-30 -64Q0 -88 30 -64Q0 -44 -30 -64z" }),
      svg("circle", { class: "pupil", cx: 0, cy: -65, r: 7 }),
      svg("path", { class: "rim", d: "M-30 -51H30L51 -30V30L30 51H-30L-51 30V-30z" }),
      svg("path", { class: "face", d: "M-26 -43H26L43 -26V26L26 43H-26L-43 26V-26z" }),
    );
  } else {
    drawing.append(svg("rect", { class: "face", x: -50, y: -50, width: 100, height: 100, rx: 16 }));
  }
  const reach = isEye ? 23 : 27;
  for (const [x, y] of SPOTS[value] ?? []) {
    drawing.append(svg("circle", { class: "spot", cx: x * reach, cy: y * reach, r: isEye ? 8 : 9.5 }));
  }
  if (!value) drawing.append(svg("text", { class: "unknown", x: 0, y: 17, "text-anchor": "middle" }, "?"));
  return drawing;
}

// Replaces what `into` shows only where it differs, so that focus and reading aloud are not disturbed.
export function show(into, ...children) {
  const made = el("div");
  made.append(...children.filter((child) => child));
  if (made.innerHTML === into.innerHTML) return;
  into.replaceChildren(...made.childNodes);
}

const SYMBOLS = {
  IDLE: "○", BETTING: "◎", CLOSED: "■", SHAKING: "≋", SETTLING: "≈", READING: "⌕", LOCKED: "▲", REVEALED: "★",
  SETTLED: "★", VOID: "↻", FAULT: "⚠", TEST: "⚙", OFFLINE: "⚡",
};

export function showState(into, view) {
  into.dataset.state = view.state;
  show(
    into,
    el("span", { class: "symbol", "aria-hidden": "true" }, SYMBOLS[view.state] ?? "·"),
    el("span", { class: "title" }, view.title),
    view.hint ? el("span", { class: "hint" }, view.hint) : null,
  );
}

export function showNotices(into, view, more = []) {
  const notices = [...more, ...view.notices];
  show(into, ...notices.map((one) => el("p", { class: `notice ${one.kind}` }, one.text)));
}

// Watches a stream of views; it comes back by itself, and `lost` is told when it is away.
export function watch(address, seen, lost) {
  let source = null;
  let timer = null;
  function open() {
    source = new EventSource(address);
    source.onmessage = (event) => {
      clearTimeout(timer);
      timer = null;
      seen(JSON.parse(event.data));
    };
    source.onerror = () => {
      if (timer === null) timer = setTimeout(lost, 500);
      if (source.readyState === EventSource.CLOSED) {
        source.close();
        setTimeout(open, 1000);
      }
    };
  }
  open();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && open());
}

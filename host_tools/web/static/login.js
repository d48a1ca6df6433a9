// Where somebody gives a PIN.
import { el, page, say, show } from "./common.js";

const place = document.getElementById("login");

async function enter(event, role, pin, said) {
  event.preventDefault();
  try {
    const answer = await fetch(`/dealer/login?lang=${page.lang}`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ role, pin: pin.value }),
    });
    if (answer.ok) return location.reload();
    show(said, el("p", { class: "notice fault" }, (await answer.json()).error));
  } catch {
    show(said, el("p", { class: "notice fault" }, say("lost_server")));
  }
  pin.value = "";
  pin.focus();
  return undefined;
}

if (page.roles.length) {
  const role = el("select", { id: "role", name: "role" }, ...page.roles.map((one) => el("option", { value: one }, say(one))));
  const pin = el("input", { id: "pin", type: "password", inputmode: "numeric", autocomplete: "off", required: true,
    maxlength: 64 });
  const said = el("div", { role: "alert" });
  place.append(el("form", { onsubmit: (event) => enter(event, role.value, pin, said) },
    el("label", { for: "role" }, say("role")), role, el("label", { for: "pin" }, say("pin")), pin,
    el("button", { type: "submit", class: "main" }, say("log_in")), said));
  pin.focus();
} else {
  place.append(el("p", { class: "notice" }, say("no_pins")));
}

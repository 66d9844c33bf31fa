// The token field. The token is kept for this tab only and sent in a header, never in a URL.

import { Problem, explained } from "./api.js";
import { field, input, panel } from "./controls.js";
import { fill, h } from "./dom.js";

export function showLogin(place, api, { refused, entered }) {
  const { element, body } = panel("This server requires a token", { cls: "login", level: 1 });
  const token = field("Token", input({ type: "password", name: "token", required: true }), {
    hint: "The value of GHOST_API_TOKEN where ghost serve was started. It is kept until this tab is closed.",
  });
  const button = h("button", { type: "submit", class: "primary" }, "Enter");
  const form = h("form", { novalidate: true }, token.element, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = token.control.value.trim();
    if (!/^[\x21-\x7e]+$/.test(given)) {
      token.refuse(given ? "A token has letters, digits and signs without blanks. Copy it again." : "Type or paste the token.");
      token.control.focus();
      return;
    }
    button.disabled = true;
    api.token = given;
    try {
      await api.get("/config");
      entered();
    } catch (error) {
      api.token = "";
      token.refuse(error instanceof Problem && error.status === 401
        ? "Wrong token. Compare it with GHOST_API_TOKEN." : explained(error));
      token.control.select();
    } finally {
      button.disabled = false;
    }
  });
  fill(body, refused ? h("p", { class: "notice bad", role: "alert" }, refused) : null, form);
  fill(place, element);
  token.control.focus();
}

// Questions to the user, and short news. The dialog is the browser's own: focus stays in it, Escape closes it.

import { h } from "./dom.js";

export function toast(message, tone = "") {
  const shown = h("div", { class: `toast ${tone}` }, message);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), tone === "bad" ? 12_000 : 6_000);
}

// Ask with a form; answers the values by name, or null if it was closed.
//   fields: [{ name, label, type, value, placeholder, hint }]
export function askUser({ title, message, fields = [], action, tone = "primary" }) {
  return new Promise((resolve) => {
    const inputs = new Map();
    const rows = fields.map((field) => {
      const props = { name: field.name, placeholder: field.placeholder, "aria-label": field.label, required: field.required };
      let input;
      if (field.type === "checkbox") input = h("input", { ...props, type: "checkbox", checked: field.value });
      else if (field.type === "textarea") input = h("textarea", { ...props, spellcheck: "false" }, field.value ?? "");
      else input = h("input", { ...props, type: field.type ?? "text", value: field.value ?? "", min: field.min, accept: field.accept });
      inputs.set(field.name, input);
      if (field.onInput) input.onchange = () => field.onInput(input, inputs);
      const label = field.type === "checkbox"
        ? h("label", { class: "row" }, input, field.label)
        : h("label", { class: "field" }, h("span", {}, field.label), input, field.hint && h("span", { class: "faint" }, field.hint));
      return label;
    });
    const close = (values) => {
      dialog.close();
      dialog.remove();
      resolve(values);
    };
    const form = h(
      "form",
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            close(Object.fromEntries([...inputs].map(([name, input]) => [name, input.type === "checkbox" ? input.checked : input.value])));
          },
        },
      },
      h("h2", { id: "dialog-title" }, title),
      message && h("p", { class: "soft" }, message),
      rows,
      h("div", { class: "actions" },
        h("button", { type: "button", on: { click: () => close(null) } }, "Close"),
        h("button", { type: "submit", class: tone }, action)),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", on: { cancel: (event) => { event.preventDefault(); close(null); } } }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Swagger UI's dark colours depend on a class; the visitor's preference comes from the browser.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", colour);
colour();

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#interface",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: -1,
  // The token is not stored.
  persistAuthorization: false,
  // No badge from another host.
  validatorUrl: null,
});

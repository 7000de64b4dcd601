// Swagger UI's dark colours go by a class, and the visitor's wish by the browser.
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
  // A token is forgotten with the page.
  persistAuthorization: false,
  // No badge from elsewhere.
  validatorUrl: null,
});

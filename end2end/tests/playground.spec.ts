import { type Page, request as playwrightRequest } from "@playwright/test";

import { PASSWORD, expect, people, test as base } from "../fixtures/demo";
import { type Server, startServer } from "../fixtures/server";
import { signInAs } from "../fixtures/session";

const test = base.extend<{ open: (query?: string) => Promise<void> }>({
  open: async ({ page, hydrated }, use) =>
    use(async (query = "") => {
      await page.goto(`/playground${query}`);
      await hydrated(page);
    }),
});

const send = async (page: Page, prompt: string) => {
  await page.getByRole("textbox", { name: "Prompt" }).fill(prompt);
  await page.getByRole("button", { name: "Send" }).click();
};

test.beforeEach(({ context, server }) => signInAs(context, server, people.editor));

test("a source alone generates a dashboard, shown with its title and widgets", async ({ page, open, a11y }) => {
  await open();
  await page.getByRole("combobox", { name: "Source" }).selectOption({ label: "Shipments" });
  await send(page, "Total weight by port");
  const dashboard = page.getByRole("log").getByRole("region", { name: /^Dashboard: / });
  await expect(dashboard.getByRole("heading", { level: 3 })).not.toBeEmpty();
  expect(await dashboard.getByRole("listitem").count()).toBeGreaterThan(1);
  await expect(dashboard.getByText("sum of weight_kg").first()).toBeVisible();
  const usage = page.getByRole("log").getByText(/^\d[\d,]* tokens$/);
  await expect(usage).toHaveCount(2);
  await expect(page.getByText("demo model")).toBeVisible();
  await a11y();
});

test("a dashboard chats: the words come in pieces, with what the model did", async ({ page, open }) => {
  await open();
  await page.getByRole("combobox", { name: "Dashboard" }).selectOption({ label: "Delays" });
  // Every text that is shown of the answer, as it grows.
  await page.getByRole("log").evaluate((log) => {
    const shown = new Set<string>();
    (window as unknown as { shown: Set<string> }).shown = shown;
    new MutationObserver(() => shown.add(log.querySelector(".answered .said")?.textContent ?? "")).observe(log, {
      childList: true,
      characterData: true,
      subtree: true,
    });
  });
  const events = page.waitForRequest(/\/api\/dashboards\/[^/]+\/chat$/);
  await send(page, "What does this dashboard show?");
  expect((await events).headers()["accept"]).toBe("text/event-stream");
  const log = page.getByRole("log");
  await expect(log.getByText("Read the source")).toBeVisible();
  await expect(log.getByText(/2 model calls/)).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveValue("");
  expect(await page.evaluate(() => (window as unknown as { shown: Set<string> }).shown.size)).toBeGreaterThan(3);

  // The conversation goes along with the next message.
  const next = page.waitForRequest(/\/chat$/);
  await page.getByRole("textbox", { name: "Prompt" }).fill("And the ports?");
  await page.keyboard.press("Control+Enter");
  const { messages } = (await next).postDataJSON();
  expect(messages.map((message: { role: string }) => message.role)).toEqual(["user", "assistant", "user"]);
  await expect(log.getByRole("article")).toHaveCount(2);
  await expect(log.getByText(/model calls?/)).toHaveCount(2);
});

test("a change that the model makes shows on the dashboard", async ({ page, open }) => {
  await open("?dashboard=harbour-delays");
  const now = page.getByRole("region", { name: "The dashboard now" });
  const before = await now.locator(".widget").count();
  await send(page, "Add a bar chart");
  await expect(page.getByText("Changed the dashboard")).toBeVisible();
  await expect(now.locator(".widget")).toHaveCount(before + 1);
});

test("an answer can be stopped, and keeps what came", async ({ page, open, consoleGuard }) => {
  consoleGuard.allow(/\/chat net::ERR_ABORTED/);
  await page.route(/\/api\/dashboards\/[^/]+\/chat$/, () => {
    // Never answered: stopping is all that ends it.
  });
  await open("?dashboard=harbour-delays");
  await send(page, "Tell me everything");
  await expect(page.getByText("Waiting for the model")).toBeVisible();
  await expect(page.getByRole("button", { name: "Send" })).toBeDisabled();
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByText(/You stopped the answer/)).toBeVisible();
  await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
});

test("a provider's failure is told as its sentence, and the prompt is kept", async ({ page, open, consoleGuard }) => {
  consoleGuard.allow(/502/);
  await page.route("**/api/generate", (route) => route.fulfill({ status: 502, json: { error: "every provider failed" } }));
  await open();
  await send(page, "Totals");
  await expect(page.getByRole("alert")).toHaveText("every provider failed");
  await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveValue("Totals");
  await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
});

test("nothing is sent without words", async ({ page, open }) => {
  await open();
  await page.getByRole("button", { name: "Send" }).click();
  await expect(page.getByText("Say what you want to see.")).toBeVisible();
  await expect(page.getByRole("log").getByRole("article")).toHaveCount(0);
});

for (const theme of ["light", "dark"]) {
  test(`is accessible in the ${theme} theme`, async ({ page, context, server, open, a11y }) => {
    await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
    await open("?dashboard=harbour-delays");
    await expect(page.getByRole("region", { name: "The dashboard now" })).toBeVisible();
    await a11y();
    await send(page, "What does this dashboard show?");
    await expect(page.getByText(/model calls/)).toBeVisible();
    await a11y();
  });
}

test("fits a narrow phone", async ({ page, open }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await open("?dashboard=harbour-delays");
  await send(page, "What does this dashboard show?");
  await expect(page.getByText(/model calls/)).toBeVisible();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBe(0);
});

test("viewers get a page that says so", async ({ page, context, server, consoleGuard }) => {
  consoleGuard.allow(/403/);
  await signInAs(context, server, people.viewer);
  const response = await page.goto("/playground");
  expect(response?.status()).toBe(403);
  await expect(page.getByRole("heading", { name: "Not allowed" })).toBeVisible();
});

test.describe("where the rate is reached", () => {
  const limited = test.extend<object, { server: Server }>({
    server: [
      async ({}, use) => {
        const server = await startServer({ LLM_RATE_PER_MINUTE: "2" }, ["--demo"]);
        await use(server);
        await server.stop();
      },
      { scope: "worker" },
    ],
  });

  limited("the sentence is an alert, and the wait is counted down until sending works again", async ({ page, open, consoleGuard, a11y }) => {
    consoleGuard.allow(/429/);
    limited.slow();
    // Meadow Foods has no rate of its own.
    await open("?source=meadow-sales");
    for (const prompt of ["one", "two"]) {
      await send(page, prompt);
      await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
    }
    await expect(page.getByRole("log").getByRole("article")).toHaveCount(2);
    await send(page, "three");
    await expect(page.getByRole("alert")).toContainText("rate limit reached: 2 model requests per minute per user in this workspace; retry after");
    const button = page.getByRole("button", { name: "Send" });
    await expect(button).toBeDisabled();
    await expect(page.getByText(/You can send again in \d+ s\./)).toBeVisible();
    const first = await page.getByText(/You can send again in/).textContent();
    await expect(page.getByText(/You can send again in/)).not.toHaveText(first ?? "");
    await a11y();
    await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveValue("three");
    await expect(button).toBeEnabled({ timeout: 40_000 });
    await expect(page.getByText("You can send again now.")).toBeVisible();
    await button.click();
    await expect(page.getByRole("log").getByRole("article")).toHaveCount(3);
    await expect(page.getByRole("alert")).toHaveCount(0);
  });
});

test("a limit that an admin changes lets the next call through at once", async ({ page, open, consoleGuard }) => {
  consoleGuard.allow(/429/);
  await page.route("**/api/generate", (route) =>
    route.fulfill({ status: 429, headers: { "retry-after": "600" }, json: { error: "rate limit reached" } }),
  );
  await open("?source=meadow-sales");
  await send(page, "Totals");
  await expect(page.getByText(/You can send again in/)).toBeVisible();
  const admin = await playwrightRequest.newContext({ baseURL: page.url() });
  await admin.post("/api/login", { data: { email: people.admin, password: PASSWORD } });
  await admin.put("/api/admin/workspaces/meadow/limits", { data: { rate_per_minute: 77 } });
  await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
  await admin.put("/api/admin/workspaces/meadow/limits", { data: { rate_per_minute: null } });
  await admin.dispose();
});

test.describe("without script", () => {
  test.use({ javaScriptEnabled: false });

  test("the form is answered by the page", async ({ page }) => {
    await page.goto("/playground");
    await page.getByRole("combobox", { name: "Source" }).selectOption({ label: "Shipments" });
    await send(page, "Total weight by port");
    await expect(page.getByRole("log").getByRole("region", { name: /^Dashboard: / })).toBeVisible();
    await page.getByRole("combobox", { name: "Dashboard" }).selectOption({ label: "Delays" });
    await send(page, "What does it show?");
    await expect(page.getByRole("log").getByText("Demo model here")).toBeVisible();
    await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  });

  test("an empty prompt is an alert", async ({ page, consoleGuard }) => {
    consoleGuard.allow(/422/);
    await page.goto("/playground");
    await page.getByRole("button", { name: "Send" }).click();
    await expect(page.getByRole("alert")).toContainText("prompt is empty");
  });
});

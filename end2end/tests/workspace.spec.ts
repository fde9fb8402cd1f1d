import type { Page } from "@playwright/test";

import { expect, people, test } from "../fixtures/demo";

/** Each test that changes limits has a workspace of its own. */
const OWN = ["main", "bad", "plain", "late", "off"];

test.beforeAll(async ({ server }) =>
  server.apply(OWN.map((id) => `[[workspace]]\nid = "own-${id}"\nname = "Own ${id}"\n`).join("\n")),
);

const path = (id: string) => `/settings/workspaces/${id}`;
const rate = (page: Page) => page.getByRole("group", { name: "Rate per user" });
const budget = (page: Page) => page.getByRole("group", { name: "Daily token budget" });
const save = (page: Page) => page.getByRole("button", { name: "Save change" });
const log = (page: Page) => page.getByRole("region", { name: "Audit" }).locator("ol > li");

test("an admin sets an override, sees before and after and the audit line, and clears it", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.admin, path("own-main"));
  await hydrated(page);
  await expect(page.getByRole("heading", { level: 1, name: "Own main" })).toBeVisible();
  await expect(rate(page).getByRole("radio", { name: "Inherit 20" })).toBeChecked();
  await expect(page.getByText("Nothing to save yet.")).toBeVisible();

  // A number is typed to override.
  await page.getByRole("textbox", { name: "Requests per minute" }).fill("1,060");
  await expect(rate(page).getByRole("radio", { name: "Override" })).toBeChecked();
  await expect(page.getByText("Rate per user inherit 20 changed to → 1,060")).toBeVisible();
  await save(page).click();
  await expect(page.getByRole("status").filter({ hasText: "Saved" })).toContainText("inherit");
  await expect(log(page).first()).toContainText("admin@demo.local");
  await expect(log(page).first()).toContainText("1,060");
  await expect(page.getByText("1,060 / min")).toBeVisible();
  await expect(page.getByText("Nothing to save yet.")).toBeVisible();

  await rate(page).getByRole("radio", { name: "Inherit 20" }).check();
  await save(page).click();
  await expect(log(page).first()).toContainText("1,060 changed to → inherit");
  await expect(page.getByText("20 / min")).toBeVisible();
  await page.reload();
  await expect(rate(page).getByRole("radio", { name: "Inherit 20" })).toBeChecked();
});

test("what is not a limit is named at its field, and nothing typed is lost", async ({ page, signIn, hydrated, a11y }) => {
  await signIn(page, people.admin, path("own-bad"));
  await hydrated(page);
  const tokens = page.getByRole("textbox", { name: "Tokens per day" });
  for (const [typed, fault] of [
    ["many", "Tokens per day: enter a whole number from 1 to 9,007,199,254,740,991."],
    ["0", "Tokens per day: 0 would switch this limit off; to do that, choose Disabled."],
  ] as const) {
    await tokens.fill(typed);
    await save(page).click();
    await expect(tokens).toHaveAccessibleDescription(fault);
    await expect(tokens).toHaveAttribute("aria-invalid", "true");
    await expect(tokens).toBeFocused();
    await expect(tokens).toHaveValue(typed);
  }
  await a11y();
  await page.reload();
  await expect(budget(page).getByRole("radio", { name: "Inherit 2,000,000" })).toBeChecked();
});

test("disabling says what it means", async ({ page, signIn, hydrated, a11y }) => {
  await signIn(page, people.admin, path("own-off"));
  await hydrated(page);
  const warning = budget(page).getByText("Disabled: nothing bounds what this workspace can spend");
  await expect(warning).toBeHidden();
  await expect(page.getByRole("progressbar", { name: "Daily token budget used" })).toBeVisible();
  await budget(page).getByRole("radio", { name: "Disabled" }).check();
  await expect(warning).toBeVisible();
  await a11y();
  await save(page).click();
  await expect(page.getByRole("progressbar")).toHaveCount(0);
});

test("a change by someone else is not overwritten", async ({ page, context, signIn, hydrated }) => {
  await signIn(page, people.admin, path("own-late"));
  await hydrated(page);
  const number = page.getByRole("textbox", { name: "Requests per minute" });
  await number.fill("7");
  const other = await context.request.put("/api/admin/workspaces/own-late/limits", { data: { rate_per_minute: 5 } });
  expect(other.ok()).toBe(true);
  await expect(page.getByText("The settings were changed meanwhile: rate per user 5")).toBeVisible();
  await expect(number).toHaveValue("7");
  await expect(page.getByText("5 / min")).toBeVisible();
  await expect(log(page).first()).toContainText("inherit changed to → 5");
  await page.getByRole("button", { name: "Load them" }).click();
  await expect(number).toHaveValue("5");
  // Untouched, the form goes along.
  await context.request.put("/api/admin/workspaces/own-late/limits", { data: { rate_per_minute: 6 } });
  await expect(number).toHaveValue("6");
});

test("usage shows as it happens, and the form is left alone", async ({ page, context, signIn, hydrated }) => {
  await signIn(page, people.admin, path("harbour"));
  await hydrated(page);
  const requests = page.locator("dl div").filter({ hasText: /^Requests/ }).locator("dd");
  const before = Number((await requests.textContent())?.replaceAll(",", ""));
  const typed = page.getByRole("textbox", { name: "Tokens per day" });
  await typed.fill("12345");
  const sources: { id: string; workspace: string }[] = await (await context.request.get("/api/sources")).json();
  const source = sources.find((source) => source.workspace === "harbour");
  const call = await context.request.post("/api/generate", { data: { source_id: source?.id, prompt: "totals" } });
  expect(call.ok()).toBe(true);
  await expect(requests).toHaveText((before + 1).toLocaleString("en-US"), { timeout: 2_000 });
  await expect(typed).toHaveValue("12345");
});

test("a source-admin sees the numbers and no form", async ({ page, signIn, hydrated, a11y, consoleGuard }) => {
  await signIn(page, people.sourceAdmin, path("meadow"));
  await hydrated(page);
  await expect(page.getByRole("progressbar", { name: "Daily token budget used" })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Tokens a day/ })).toBeVisible();
  await expect(page.getByRole("radio")).toHaveCount(0);
  await expect(save(page)).toHaveCount(0);
  await expect(page.getByRole("region", { name: "Audit" })).toBeVisible();
  await a11y();
  consoleGuard.allow(/status of 404/);
  expect((await page.goto(path("harbour")))?.status()).toBe(404);
});

test("an editor is told that this is not theirs", async ({ page, signIn, consoleGuard }) => {
  consoleGuard.allow(/status of 403/);
  await signIn(page, people.editor);
  expect((await page.goto(path("meadow")))?.status()).toBe(403);
  const form = { workspace: "meadow", rate: "disabled", rate_seen: "inherit", budget: "disabled", budget_seen: "inherit" };
  const posted = await page.request.post("/_fn/set-limits", { form, headers: { accept: "text/html" } });
  expect(posted.status()).toBe(403);
});

test.describe("without script", () => {
  test.use({ javaScriptEnabled: false });

  test("an override is saved, and what is wrong comes back as it was typed", async ({ page, context, signIn }) => {
    await signIn(page, people.admin, path("own-plain"));
    await rate(page).getByRole("radio", { name: "Override" }).check();
    await page.getByLabel("Requests per minute").fill("a & b");
    await page.getByLabel("Tokens per day").fill("5,000");
    await budget(page).getByRole("radio", { name: "Override" }).check();
    await save(page).click();
    await expect(page.getByText("Requests per minute: enter a whole number from 1 to 2,147,483,647.")).toBeVisible();
    await expect(page.getByLabel("Requests per minute")).toHaveValue("a & b");
    await expect(page.getByLabel("Tokens per day")).toHaveValue("5,000");

    await page.getByLabel("Requests per minute").fill("60");
    await save(page).click();
    await expect(page).toHaveURL(/\?saved=\d+$/);
    const status = page.getByRole("status").filter({ hasText: "Saved" });
    await expect(status).toContainText("inherit changed to → 60");
    await expect(status).toContainText("5,000");
    await expect(log(page).first()).toContainText("60");

    await context.request.put("/api/admin/workspaces/own-plain/limits", { data: { rate_per_minute: 5 } });
    await page.getByLabel("Requests per minute").fill("7");
    await save(page).click();
    await expect(page.getByRole("alert")).toContainText("The rate per user was changed meanwhile, from 60 to 5");
    await expect(page.getByLabel("Requests per minute")).toHaveValue("7");
  });
});

for (const theme of ["light", "dark"]) {
  test(`is accessible in the ${theme} theme`, async ({ page, context, server, signIn, hydrated, a11y }) => {
    await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
    await signIn(page, people.admin, path("lantern"));
    await hydrated(page);
    await page.getByText("The same as a table").click();
    await a11y();
    await page.setViewportSize({ width: 360, height: 740 });
    await a11y();
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(await overflow()).toBe(0);
    await page.goto("/settings/audit");
    await hydrated(page);
    expect(await overflow()).toBe(0);
    await a11y();
    await page.setViewportSize({ width: 1280, height: 740 });
    await a11y();
  });
}

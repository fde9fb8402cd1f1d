import { expect, people, test } from "../fixtures/demo";

const LONG = "مساحة العمل ".repeat(8) + "工作空间".repeat(15) + "x".repeat(44);

/** Enough for three pages beside the demo's own. */
const MANY = Array.from({ length: 60 }, (_, n) => {
  const name = n === 7 ? LONG.slice(0, 200) : `Branch ${n}`;
  const limits = n === 3 ? "daily_token_budget = 0\nrate_per_minute = 0\n" : "";
  return `[[workspace]]\nid = "branch-${n}"\nname = "${name}"\n${limits}`;
}).join("\n");

test.beforeAll(async ({ server }) => server.apply(MANY));

const PATH = "/settings/workspaces";

test("a row says how much is used, of what, and from where the limit comes", async ({ page, signIn }) => {
  await signIn(page, people.admin, PATH);
  const row = page.getByRole("row", { name: /Lantern Studio/ });
  await expect(row).toContainText(/[\d,]+of 400,000/);
  await expect(row.getByText("override")).toHaveCount(2);
  const bar = row.getByRole("progressbar", { name: "Budget of Lantern Studio used" });
  expect(Number(await bar.getAttribute("aria-valuenow"))).toBeGreaterThan(80);
  await expect(row.getByRole("link", { name: "Lantern Studio" })).toHaveAttribute("href", `${PATH}/lantern`);
  await expect(page.getByRole("row", { name: /Meadow Foods/ }).getByText("default")).toHaveCount(2);
});

test("a disabled limit has no bar", async ({ page, signIn }) => {
  await signIn(page, people.admin, `${PATH}?search=branch-3`);
  const row = page.getByRole("row", { name: /Branch 3 / });
  await expect(row.getByText("disabled")).toHaveCount(2);
  await expect(row.getByText("no budget")).toBeVisible();
  await expect(row.getByRole("progressbar")).toHaveCount(0);
});

test("the list follows what is typed, and the cursor stays", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.admin, PATH);
  await hydrated(page);
  const search = page.getByRole("searchbox", { name: "Search workspaces" });
  await search.pressSequentially("har", { delay: 30 });
  await expect(page.getByRole("row", { name: /Harbour/ })).toBeVisible();
  await expect(page.getByRole("row", { name: /Meadow/ })).toHaveCount(0);
  await expect(page).toHaveURL(`${PATH}?search=har`);
  await expect(search).toBeFocused();
  await search.fill("there is none like this");
  await expect(page.getByRole("heading", { name: "No workspace matches “there is none like this”" })).toBeVisible();
  await page.getByRole("link", { name: "Show all workspaces" }).click();
  await expect(page.getByRole("row")).toHaveCount(26);
  await expect(search).toHaveValue("");
});

for (const javaScriptEnabled of [true, false]) {
  test.describe(javaScriptEnabled ? "with script" : "without script", () => {
    test.use({ javaScriptEnabled });

    test("searches, sorts, filters and turns pages", async ({ page, signIn }) => {
      await signIn(page, people.admin, PATH);
      if (javaScriptEnabled) await expect(page.locator("html[data-hydrated]")).toBeAttached();
      const names = () => page.getByRole("rowheader").getByRole("link");
      await expect(names().first()).toHaveText("Lantern Studio");

      await page.getByRole("columnheader", { name: "Workspace" }).getByRole("link").click();
      await expect(page.getByRole("columnheader", { name: "Workspace" })).toHaveAttribute("aria-sort", "ascending");
      await expect(names().first()).toHaveText("Branch 0");
      await expect(page.getByText("1–25 of 63")).toBeVisible();
      await expect(page.getByRole("link", { name: "Previous" })).toHaveCount(0);

      await page.getByRole("link", { name: "Next" }).click();
      await expect(page.getByText("26–50 of 63")).toBeVisible();
      await page.getByRole("link", { name: "Next" }).click();
      await expect(page.getByText("51–63 of 63")).toBeVisible();
      await expect(page.getByRole("link", { name: "Next" })).toHaveCount(0);
      await page.getByRole("link", { name: "Previous" }).click();
      await expect(page.getByText("26–50 of 63")).toBeVisible();

      await page.getByRole("navigation", { name: "Filter" }).getByRole("link", { name: /Overridden/ }).click();
      await expect(page.getByText("1–3 of 3")).toBeVisible();
      expect(await names().allTextContents()).toEqual(["Branch 3", "Harbour Logistics", "Lantern Studio"]);

      await page.getByRole("searchbox", { name: "Search workspaces" }).fill("LANTERN");
      await page.getByRole("button", { name: "Search" }).click();
      await expect(page.getByText("1–1 of 1")).toBeVisible();
      await expect(page).toHaveURL(`${PATH}?search=LANTERN&sort=name&filter=overridden`);
      await expect(page.getByRole("columnheader", { name: "Workspace" })).toHaveAttribute("aria-sort", "ascending");
    });
  });
}

test("numbers follow a call within two seconds, without a reload", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.admin, `${PATH}?search=meadow`);
  await hydrated(page);
  const cell = page.getByRole("row", { name: /Meadow Foods/ }).locator("[data-label='Requests']");
  const before = Number(await cell.textContent());
  const sources = await (await page.request.get("/api/sources")).json();
  const source = sources.find((source: { workspace: string }) => source.workspace === "meadow");
  const answer = await page.request.post("/api/generate", { data: { source_id: source.id, prompt: "a bar chart" } });
  expect(answer.status()).toBe(200);
  await expect(cell).toHaveText(String(before + 1), { timeout: 2_000 });
});

test("a lost connection is told, and is made again", async ({ page, signIn, consoleGuard, hydrated }) => {
  consoleGuard.allow(/ERR_|502/);
  await signIn(page, people.admin, PATH);
  await hydrated(page);
  await page.route("**/api/live/**", (route) => route.fulfill({ status: 502 }));
  await page.getByRole("navigation", { name: "Filter" }).getByRole("link", { name: /Refusing/ }).click();
  await expect(page.getByText("The connection is lost")).toBeVisible();
  await page.unroute("**/api/live/**");
  await expect(page.getByText("The connection is lost")).toBeHidden({ timeout: 10_000 });
  await expect(page.getByText("1–3 of 3")).toBeVisible();
});

test("source-admins see their own workspaces alone", async ({ page, signIn }) => {
  await signIn(page, people.sourceAdmin, PATH);
  await expect(page.getByRole("rowheader")).toHaveCount(1);
  await expect(page.getByRole("rowheader")).toContainText("Meadow Foods");
  await expect(page.getByText("of 1 workspace")).toBeVisible();
});

for (const theme of ["light", "dark"]) {
  for (const width of [360, 1440]) {
    test(`is accessible and whole in the ${theme} theme, ${width} px wide`, async ({ page, context, server, signIn, hydrated, a11y }) => {
      await page.setViewportSize({ width, height: 800 });
      await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
      await signIn(page, people.admin, `${PATH}?sort=name&page=3`);
      await hydrated(page);
      await expect(page.getByRole("rowheader").filter({ hasText: "工作空间" })).toBeVisible();
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow).toBe(0);
      await a11y();
    });
  }
}

test("keys alone reach all there is", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.admin, `${PATH}?search=lantern`);
  await hydrated(page);
  const reached: string[] = [];
  for (let step = 0; step < 24; step++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent?.trim() ?? ""));
  }
  for (const stop of ["Skip to the page", "Workspaces", "Search workspaces", "Budget used", "Lantern Studio"]) {
    expect(reached).toContain(stop);
  }
});

// The first page in a real browser, on a real server: what a person sees and does, without an error
// on the console, without a violation of the policy, without a request to another host.

import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openBrowser } from '../support/chromium.ts'
import { useServer } from '../support/server.ts'

// Skipped where chromium is not found on the PATH; CI installs it.
describe.skipIf(chromiumPath === undefined)(
  'the page in Chromium (needs chromium on the PATH)',
  { timeout: 120_000 },
  () => {
    const server = useServer({ development: true, issuers: [] })
    let browser: Browser
    let url: string

    beforeAll(async () => {
      browser = await openBrowser()
      await server.app.listen({ host: '127.0.0.1', port: 0 })
      url = `http://127.0.0.1:${(server.app.server.address() as AddressInfo).port}`
      await server.work()
    })
    afterAll(() => browser?.close())

    /** A visit that remembers everything that must not happen. */
    async function visit(path = '/', options: Parameters<Browser['newContext']>[0] = {}) {
      const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options })
      const page = await context.newPage()
      const wrong: string[] = []
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) wrong.push(message.text())
      })
      page.on('pageerror', (error) => wrong.push(String(error)))
      page.on('request', (request) => {
        if (!request.url().startsWith(url)) wrong.push(`asks ${request.url()}`)
      })
      page.on('response', (answer) => {
        if (answer.status() >= 400) wrong.push(`${answer.status()} ${answer.url()}`)
      })
      await page.goto(url + path)
      return { page, wrong, close: () => context.close() }
    }

    const heading = (page: Page) => page.getByRole('heading', { level: 1 })

    it('says how things are, writes a document, follows it, and finds it while typing', async () => {
      const { page, wrong, close } = await visit()
      await heading(page)
        .filter({ hasText: /subscriptions are keeping up/ })
        .waitFor()
      await page.getByText('Nothing is here yet.').waitFor()

      await page.getByRole('button', { name: 'Write a document' }).click()
      await page.getByText(/^Searchable \d+ ms after the commit/).waitFor()
      for (const step of ['Committed', 'Numbered', 'Delivered', 'Searchable']) {
        const item = page.locator('#track li', { hasText: step })
        await expect.poll(() => item.textContent()).toMatch(/\d ms/)
      }
      const hits = page.getByRole('list', { name: 'Found' }).getByRole('listitem')
      await expect.poll(() => hits.count()).toBe(1)
      const title = (await hits.first().getByRole('heading').textContent()) ?? ''
      const word = title.split(' ').at(-1) ?? ''

      await page.keyboard.press('Tab')
      await page.getByRole('heading', { name: 'Search', exact: true }).click()
      await page.keyboard.press('/')
      expect(await page.evaluate('document.activeElement.id')).toBe('query')
      await page.keyboard.type(word.slice(0, -1))
      await expect.poll(() => page.locator('mark').first().textContent()).toBe(word)
      await page.keyboard.press('Escape')
      await page.getByLabel(/Memo/).check()
      await expect.poll(() => page.locator('#found').textContent()).toMatch(/^1 document in \d+ ms/)

      await page.getByRole('button', { name: `Follow ${title}` }).click()
      await page.getByText('Search has its newest version.').waitFor()
      expect(wrong).toEqual([])
      await close()
    })

    it('is usable at 360 px, in the dark, and by somebody who may only read', async () => {
      const small = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' as const }
      const { page, wrong, close } = await visit('/', small)
      await page.getByLabel('You are').selectOption({ label: 'Hedy Lamarr (reader)' })
      await page.getByRole('button', { name: 'Write a document' }).waitFor({ state: 'hidden' })
      await page.getByLabel('My drafts').check()
      await page.getByText('You have no drafts.').waitFor()
      const widths = 'document.documentElement.scrollWidth <= innerWidth'
      expect(await page.evaluate(widths)).toBe(true)
      expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(237, 237, 244)')
      expect(wrong).toEqual([])
      await close()
    })

    it('says so when the server goes away', async () => {
      const { page, close } = await visit()
      await heading(page)
        .filter({ hasText: /keeping up/ })
        .waitFor()
      const lookNow = () => page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
      await page.context().setOffline(true)
      await lookNow()
      await heading(page).filter({ hasText: 'The server does not answer. Trying again' }).waitFor()
      await page.context().setOffline(false)
      await lookNow()
      await heading(page)
        .filter({ hasText: /keeping up/ })
        .waitFor()
      await close()
    })

    it('without the development sign-in it asks for a token, and keeps no wrong one', async () => {
      const { page, close } = await visit('/catcher')
      expect(await page.textContent('body')).toContain('HMD_NOT_FOUND')
      await page.route('**/api/v2/about', (route) =>
        route.fulfill({ json: { name: 'hermod', version: '0', development: false, people: [] } }),
      )
      await page.goto(url)
      await heading(page).filter({ hasText: 'The server is ready. Sign in' }).waitFor()
      await page.getByLabel('Token').fill('not-a-token')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await expect.poll(() => page.getByRole('alert').textContent()).not.toBe('')
      const answer = await page.request.post(`${url}/api/v2/dev/sign-in`, {
        data: { person: 'ada' },
      })
      await page.getByLabel('Token').fill((await answer.json()).token)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await heading(page)
        .filter({ hasText: /keeping up/ })
        .waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByLabel('Token').waitFor()
      await close()
    })
  },
)

// The API reference and the page of problems in a real browser, under the strict policy: they work,
// and nothing is refused, missing or fetched from elsewhere.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openBrowser } from '../support/chromium.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
// Skipped where chromium is not found on the PATH; CI installs it.
describe.skipIf(chromiumPath === undefined)('in Chromium (needs chromium on the PATH)', () => {
  let browser: Browser
  let origin = ''
  beforeAll(async () => {
    origin = await server.app.listen({ host: '127.0.0.1', port: 0 })
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  /** The page and everything that went wrong on it. */
  async function visit(path: string): Promise<{ page: Page; wrong: string[] }> {
    const page = await browser.newPage()
    const wrong: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) wrong.push(message.text())
    })
    page.on('pageerror', (error) => wrong.push(error.message))
    page.on('response', (response) => {
      if (response.status() >= 400) wrong.push(`${response.status()} ${response.url()}`)
    })
    page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(origin) && !url.startsWith('data:')) wrong.push(`elsewhere: ${url}`)
    })
    await page.goto(origin + path)
    return { page, wrong }
  }

  it('the reference shows every operation, and opens one', async () => {
    const { page, wrong } = await visit('/docs')
    const operation = page.locator('#operations-tokens-createToken')
    await operation.waitFor()
    await operation.locator('button.opblock-summary-control').click()
    await operation.getByText('nightly export').first().waitFor()
    await operation.getByText('HMD_UNAUTHENTICATED').first().waitFor()
    expect(wrong).toEqual([])
    await page.close()
  })

  it('the type of a problem leads to its line', async () => {
    const problem = (await server.ask('GET', '/api/v2/tokens')).json()
    const { page, wrong } = await visit(problem.type)
    await page.locator('#hmd_unauthenticated').getByText('HMD_UNAUTHENTICATED').waitFor()
    expect(wrong).toEqual([])
    await page.close()
  })
})

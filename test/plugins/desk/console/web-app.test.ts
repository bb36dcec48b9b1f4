// alone, timeout: 180s: a daemon and a browser, and the library of the browser replaces functions of Node
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserContext, Page } from 'playwright-core'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Files } from '../../../../plugins/desk/console/files.js'
import { eventually } from '../../../fixtures/session-world.js'
import { openScene, type Scene } from './scene.js'

const built = fileURLToPath(new URL('../../../../dist/console', import.meta.url))

let scene: Scene
let context: BrowserContext
let page: Page

test.before(async () => {
  scene = await openScene()
  context = await scene.context({ serviceWorkers: 'allow' })
  page = await scene.page(context, 'home')
})
test.after(() => scene?.close())

/** The worker of the page serves it from now on. */
const controlled = (of: Page) =>
  of.evaluate(
    `navigator.serviceWorker.controller !== null ||
      new Promise(done => navigator.serviceWorker.addEventListener('controllerchange', () => done(true)))`,
  )
const keptAddresses = (of: Page): Promise<string[]> =>
  of.evaluate(`caches.keys().then(async names => {
    const lists = await Promise.all(names.map(async name => (await caches.open(name)).keys()))
    return lists.flat().map(({ url }) => new URL(url).pathname)
  })`)

test('a browser can install the console', async () => {
  const devtools = await context.newCDPSession(page)
  const manifest = await devtools.send('Page.getAppManifest')
  assert.equal([manifest.errors, manifest.url], [[], `${scene.base}/console/assets/manifest.webmanifest`])
  const { icons } = JSON.parse(manifest.data ?? '') as { icons: { src: string; sizes: string; type: string }[] }
  for (const { src, sizes, type } of icons) {
    const reply = await fetch(`${scene.base}${src}`)
    assert.equal([reply.status, reply.headers.get('content-type')], [200, type])
    const bytes = Buffer.from(await reply.arrayBuffer())
    if (type === 'image/png') assert.is(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, sizes)
  }
  await controlled(page)
  const { installabilityErrors } = await devtools.send('Page.getInstallabilityErrors')
  // A window of a test is a private one, which installs nothing.
  assert.equal(
    installabilityErrors.map(({ errorId }) => errorId).filter(id => id !== 'in-incognito'),
    [],
  )
})

test('the worker keeps the shell and nothing else', async () => {
  await controlled(page)
  for (const view of ['sessions', 'work', 'manage/vault']) {
    await page.goto(`${scene.base}/console/#/${view}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
  }
  const { files } = JSON.parse(readFileSync(path.join(built, 'files.json'), 'utf8')) as {
    files: Record<string, { hashed: boolean }>
  }
  const hashed = Object.keys(files).filter(name => files[name]?.hashed)
  const shell = ['/console', '/console/assets/icon.svg', ...hashed.map(name => `/console/assets/${name}`)]
  assert.equal((await keptAddresses(page)).sort(), shell.sort())
})

test('without a daemon the page says so, and goes on by itself when it runs again', async () => {
  await controlled(page)
  await scene.at.svc('daemon', 'stop')
  await page.goto('about:blank')
  await page.goto(`${scene.base}/console/#/sessions`)
  await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor()
  const notice = page.getByRole('alert').filter({ hasText: 'The daemon is not running' })
  await notice.getByText('svc daemon start', { exact: true }).waitFor()
  await scene.at.svc('daemon', 'start')
  await notice.waitFor({ state: 'detached' })
  await page.getByText('There are no sessions yet.').waitFor()
  assert.is(await page.getByRole('alert').count(), 0)
})

/** Serves the files of the console alone, from a folder that can be another one later. */
async function filesServer(): Promise<{ server: Server; base: string; from: (folder: string) => void }> {
  let files: Files
  const server = createServer((request, reply) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const name = pathname === '/console' ? 'index.html' : pathname.replace('/console/assets/', '')
    files.serve(name, {}).then(
      ({ status, headers, body }) => reply.writeHead(status, headers).end(body),
      () => reply.writeHead(404).end(),
    )
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const from = (folder: string) => {
    files = new Files(folder)
  }
  return { server, base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, from }
}

test('after an upgrade the next load shows the new page, and the one after a stop too', async () => {
  const upgraded = mkdtempSync(path.join(tmpdir(), 'svc-console-'))
  const { server, base, from } = await filesServer()
  const own = await scene.browser.newContext()
  try {
    cpSync(built, upgraded, { recursive: true })
    for (const [name, was, is] of [
      ['index.html', '<title>svc console', '<title>svc console, upgraded'],
      ['worker.js', 'svc-console-', 'svc-console-next-'],
    ] as const) {
      const file = path.join(upgraded, name)
      const text = readFileSync(file, 'utf8')
      assert.ok(text.includes(was))
      writeFileSync(file, text.replaceAll(was, is))
    }
    from(built)
    const tab = await own.newPage()
    const titleOf = async () =>
      /<title>(.*?)<\/title>/.exec((await (await tab.goto(`${base}/console`))?.text()) ?? '')?.[1]
    assert.is(await titleOf(), 'svc console')
    await controlled(tab)
    from(upgraded)
    assert.is(await titleOf(), 'svc console, upgraded', 'at the next load')
    const names = () => tab.evaluate<string[]>('caches.keys()')
    await eventually(async () => (await names()).some(name => name.includes('next')), 'the new shell')
    const settled = "one => one.installing === null && one.waiting === null && one.active.state === 'activated'"
    await eventually(
      () => tab.evaluate<boolean>(`navigator.serviceWorker.getRegistration('/console').then(${settled})`),
      'the new worker',
    )
    assert.is((await names()).length, 2, 'open pages of the former one load their parts')
    server.closeAllConnections()
    await new Promise(done => server.close(done))
    assert.is(await titleOf(), 'svc console, upgraded', 'without a daemon')
  } finally {
    await own.close()
    server.closeAllConnections()
    server.close()
    rmSync(upgraded, { recursive: true })
  }
})

test('a message shows a notification, and a click leads to the question of its session', async () => {
  const question = { toolCall: { toolCallId: 'p1', title: 'git push', kind: 'execute' } }
  const options = [{ optionId: 'allow_once', name: 'allow_once', kind: 'allow_once' }]
  const id = await scene.session({ name: 'Asks' })
  await scene.api('POST', `/api/workspaces/${scene.workspace}/sessions/${id}/prompt`, {
    message: `ask ${JSON.stringify({ ...question, options })}`,
  })
  await page.goto(`${scene.base}/console/#/home`)
  await controlled(page)
  await context.grantPermissions(['notifications'], { origin: scene.base })
  const devtools = await context.newCDPSession(page)
  const registered = new Promise<string>(resolve =>
    devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const own = registrations.find(({ isDeleted, scopeURL }) => !isDeleted && scopeURL.startsWith(scene.base))
      if (own) resolve(own.registrationId)
    }),
  )
  await devtools.send('ServiceWorker.enable')
  const about = { origin: scene.base, registrationId: await registered }
  const shown = () =>
    page.evaluate<{ title: string; place: string }[]>(`navigator.serviceWorker.ready
      .then(one => one.getNotifications())
      .then(all => all.map(({ title, data }) => ({ title, place: data.place })))`)
  await page.evaluate('navigator.serviceWorker.ready')
  const [worker] = context.serviceWorkers()
  const lure = { title: 'Lure', tag: 'b', session: '../../../evil?x=//evil.example' }
  for (const [data, title] of [
    [
      JSON.stringify({ title: 'An agent waits for your answer', tag: 'a', session: id }),
      'An agent waits for your answer',
    ],
    ['{ not readable', 'Something needs you'],
    [JSON.stringify(lure), lure.title],
  ] as const) {
    // A busy browser drops messages for a worker that is just started or stopped. A repeated one replaces the notification by its tag.
    let sentAt = -Infinity
    await eventually(async () => {
      if (performance.now() - sentAt > 3000) {
        await worker?.evaluate('self.registration.active?.state')
        await devtools.send('ServiceWorker.deliverPushMessage', { ...about, data })
        sentAt = performance.now()
      }
      return (await shown()).some(one => one.title === title)
    }, `the notification "${title}"`)
  }
  assert.equal(
    (await shown()).sort((a, b) => a.title.localeCompare(b.title)),
    [
      { title: 'An agent waits for your answer', place: `#/sessions/${id}` },
      { title: 'Lure', place: '#/home' },
      { title: 'Something needs you', place: '#/home' },
    ],
  )
  await worker?.evaluate(`self.registration.getNotifications({ tag: 'a' }).then(([notification]) =>
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification })))`)
  await page.getByRole('region', { name: 'The agent asks' }).getByText('git push').waitFor()
  assert.is(page.url(), `${scene.base}/console/#/sessions/${id}`)
  assert.is((await shown()).length, 2, 'the notification is closed')
})

test('push says what it is before it is on, and then offers to subscribe', async () => {
  await page.goto(`${scene.base}/console/#/home`)
  const choice = page.getByText('Notifications of this browser')
  await choice.focus()
  await page.keyboard.press('Enter')
  await page.getByText('svc config set console.push.enabled true', { exact: true }).waitFor()
  const changes = [{ key: 'console.push.enabled', value: true }]
  await scene.api('PATCH', '/api/settings/keys', { changes })
  await page.reload()
  await choice.click()
  await page.getByRole('button', { name: 'Turn on in this browser' }).waitFor()
  assert.equal(await wrongWith(page), [])
  const push = await scene.api<{ public_key: string; subscriptions: unknown[] }>('GET', '/api/console/push')
  assert.is(Buffer.from(push.public_key, 'base64url').length, 65)
  assert.equal(push.subscriptions, [])
})

test('a worktree is shown with what changed in it, by keyboard', async () => {
  const root = path.join(scene.at.folder, 'demo')
  const git = (at: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: at })
  git(root, 'init', '-q', '-b', 'main')
  writeFileSync(path.join(root, 'notes.txt'), 'one\n-- two\nthree\n')
  git(root, 'add', '-A')
  git(root, 'commit', '-qm', 'first')
  git(root, 'worktree', 'add', '-q', '-b', 'side', path.join(scene.at.folder, 'demo.worktrees/side'))
  const side = path.join(scene.at.folder, 'demo.worktrees/side')
  writeFileSync(path.join(side, 'notes.txt'), 'one\nthree\n<img src=x onerror=alert(1)>\n')
  writeFileSync(path.join(side, 'binary'), Buffer.from([0, 1]))
  await page.goto(`${scene.base}/console/#/work/worktrees`)
  const link = page.getByRole('link', { name: 'side', exact: true })
  await link.focus()
  await page.keyboard.press('Enter')
  const details = page.getByRole('complementary', { name: 'Details' })
  const file = details.getByRole('region', { name: 'notes.txt', exact: true })
  assert.equal((await file.locator('pre').textContent())?.trimEnd().split('\n'), [
    '1   one',
    '2 - -- two',
    '2   three',
    '3 + <img src=x onerror=alert(1)>',
  ])
  await details.getByText('not text, or too large').waitFor()
  assert.equal(await wrongWith(page), [])
  await page.setViewportSize({ width: 390, height: 800 })
  assert.is(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0)
  await details.getByRole('button', { name: 'Close' }).click()
  await details.waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 1360, height: 860 })
})

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

async function wrongWith(shown: Page): Promise<string[]> {
  if (!(await shown.evaluate<boolean>('Boolean(window.axe)'))) await shown.evaluate(axe)
  return shown.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ' ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')))`)
}

test('on a phone the views are behind a button, by touch and by keyboard', async () => {
  const own = await scene.context({ viewport: { width: 390, height: 800 } })
  const phone = await scene.page(own, 'manage/vault')
  const menu = phone.getByRole('button', { name: 'Menu' })
  const views = phone.locator('#views')
  assert.is(await views.isVisible(), false)
  const overflow = 'document.documentElement.scrollWidth - innerWidth'
  assert.is(await phone.evaluate(overflow), 0)
  await menu.click()
  assert.is(await menu.getAttribute('aria-expanded'), 'true')
  for (const name of ['Home', 'Automation', 'Audit'])
    assert.ok(await phone.getByRole('link', { name, exact: true }).isVisible(), name)
  assert.is(await phone.evaluate(overflow), 0)
  assert.equal(await wrongWith(phone), [])
  await phone.getByRole('link', { name: 'Work', exact: true }).click()
  await phone.getByRole('heading', { level: 1, name: 'Work' }).waitFor()
  assert.is(await views.isVisible(), false)
  await menu.focus()
  await phone.keyboard.press('Enter')
  await phone.keyboard.press('Tab')
  await phone.keyboard.press('Escape')
  assert.equal([await views.isVisible(), await menu.evaluate('document.activeElement?.textContent')], [false, 'Menu'])
  await phone.keyboard.press('Enter')
  for (let steps = 0; steps < 3; steps++) await phone.keyboard.press('Tab')
  await phone.keyboard.press('Enter')
  await phone.getByRole('heading', { level: 1, name: 'Work' }).waitFor()
  assert.equal(await wrongWith(phone), [])
  await own.close()
})

test.after(() => {
  if (scene) assert.equal(scene.misdeeds, [])
})

test.run()

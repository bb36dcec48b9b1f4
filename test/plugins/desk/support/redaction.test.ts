import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SecretSet } from '../../../../kernel/kit/secret-set.js'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './scene.js'

/** Secrets that are planted; `SECRETS=10000` for the long run. */
const COUNT = Number(process.env.SECRETS ?? 1100)

/** Names of members that hold a secret, in every spelling. */
const NAMES = [
  'apiKey',
  'api_key',
  'API-KEY',
  'x-api-key',
  'X-Api-Key',
  'authorization',
  'Authorization',
  'password',
  'passwd',
  'PASSWORD',
  'db_password',
  'secret',
  'client_secret',
  'clientSecret',
  'token',
  'access_token',
  'refreshToken',
  'AUTH_TOKEN',
  'privateKey',
  'private_key',
  'AWS_SECRET_ACCESS_KEY',
  'passphrase',
  'cookie',
  'set-cookie',
  'credentials',
] as const

const json = (name: string, value: string) => JSON.stringify({ [name]: value })

/** Ways in which a secret stands in a text, when nothing but the name beside it says that it is one. */
const WAYS: Readonly<Record<string, (name: string, value: string) => string>> = {
  'a member of JSON': json,
  'JSON in JSON': (name, value) => JSON.stringify({ body: json(name, value) }),
  'JSON in JSON in JSON': (name, value) => JSON.stringify({ a: JSON.stringify({ b: json(name, value) }) }),
  'JSON behind words': (name, value) => `the request failed: ${json(name, value)} at line 3`,
  'quoted JSON behind words': (name, value) => `sent ${JSON.stringify(json(name, value))} to the server`,
  'base64 of JSON': (name, value) => `payload=${Buffer.from(json(name, value)).toString('base64')}`,
  'URL-safe base64 of JSON': (name, value) => Buffer.from(json(name, value)).toString('base64url'),
  'base64 of base64': (name, value) =>
    Buffer.from(Buffer.from(json(name, value)).toString('base64')).toString('base64'),
  'URL-encoded JSON': (name, value) => `GET /x?q=${encodeURIComponent(json(name, value))}`,
  'a query': (name, value) => `https://example.com/?a=1&${name}=${value}&b=2`,
  'an encoded query': (name, value) => encodeURIComponent(`https://example.com/?${name}=${value}&b=2`),
  'an assignment': (name, value) => `${name}=${value}`,
  'a quoted assignment': (name, value) => `${name} = "${value}"`,
  'a header': (name, value) => `> ${name}: ${value}`,
  'a header as a pair': (name, value) => JSON.stringify({ headers: [[name, value]] }),
  'a pair behind words': (name, value) => `sent ${JSON.stringify([[name, value]])} to the server`,
  'a quoted pair behind words': (name, value) => `sent ${JSON.stringify(JSON.stringify([name, value]))}`,
  'a header as an object': (name, value) => JSON.stringify({ list: [{ name, value }] }),
  'an option': (name, value) => `agent --${name} ${value} --verbose`,
  arguments: (name, value) => JSON.stringify({ argv: ['agent', `--${name}`, value] }),
  XML: (name, value) => `<${name}>${value}</${name}>`,
  YAML: (name, value) => `  ${name}: '${value}'`,
}

/** The first is in the text of an error, the others in members of a line or an event. */
const canary = () => `cnry${randomBytes(9).toString('hex')}`

/** What would still show a secret: the value itself, or its base64 and hex. */
const formsOf = (value: string): string[] => [
  value,
  encodeURIComponent(value),
  Buffer.from(value).toString('hex'),
  ...[0, 1, 2].map(before => {
    const form = Buffer.from(`${'\0'.repeat(before)}${value}`).toString('base64')
    return form.slice(before === 0 ? 0 : before + 1, Math.floor(((value.length + before) * 8) / 6))
  }),
]

/** Characters of a form by which it is found: each place of a text is looked at once, however many secrets there are. */
const BEGINNING = 14

interface Planted {
  readonly value: string
  readonly where: string
}

/** Which secrets a text shows. */
function shownIn(planted: readonly Planted[]): (text: string) => string[] {
  const forms = new Map<string, { readonly form: string; readonly where: string }[]>()
  for (const { value, where } of planted)
    for (const form of formsOf(value)) {
      const beginning = form.slice(0, BEGINNING)
      const same = forms.get(beginning) ?? []
      forms.set(beginning, same)
      same.push({ form, where })
    }
  return text => {
    const found: string[] = []
    for (let at = 0; at + BEGINNING <= text.length; at++)
      for (const { form, where } of forms.get(text.slice(at, at + BEGINNING)) ?? [])
        if (text.startsWith(form, at)) found.push(where)
    return found
  }
}

const test = suite('secrets in support bundles')

test(`a bundle contains none of ${COUNT} planted secrets in any context`, async () => {
  const planted: Planted[] = []
  const plant = (where: string) => {
    const value = canary()
    planted.push({ value, where })
    return value
  }
  const lines: string[] = []
  const log = (fields: object) =>
    void lines.push(JSON.stringify({ level: 'warn', time: '2030-01-01T00:00:00.000Z', ...fields }))
  const known: string[] = []
  const events: Record<string, unknown>[] = []
  const ways = Object.entries(WAYS)
  for (let n = 0; planted.length < COUNT; n++) {
    const name = NAMES[n % NAMES.length] as string
    const [way, write] = ways[Math.floor(n / NAMES.length) % ways.length] as (typeof ways)[number]
    const text = write(name, plant(`${way}, ${name}`))
    if (n % 3 === 0) log({ msg: text })
    else if (n % 3 === 1) log({ msg: 'a line', detail: { text } })
    else lines.push(text)
    events.push({ error: write(name, plant(`an event: ${way}, ${name}`)) })
  }
  for (const name of NAMES) log({ msg: 'members', data: { deep: [{ [name]: plant(`a member ${name}`) }] } })
  // Values that stand alone: only a registration, the environment or a file of an agent tells that they are secret.
  const registered = plant('a registered value')
  known.push(registered)
  log({ msg: `alone: ${registered}` })
  log({ msg: `alone in base64: ${Buffer.from(`xy${registered}z`).toString('base64')}` })
  const split = plant('a registered value over two lines')
  known.push(split)
  log({ plugin: 'sessions', msg: `the agent says ${split.slice(0, 9)}` })
  log({ plugin: 'tasks', msg: 'something else in between' })
  log({ plugin: 'sessions', msg: `${split.slice(9)} and goes on` })
  // A line that may go on in the next one, which is JSON.
  log({ plugin: 'json', msg: `> credentials: ${plant('a header before JSON')}` })
  log({ plugin: 'json', msg: JSON.stringify({ headers: [['apiKey', plant('a pair behind a header')]] }) })
  const halves = plant('the value of a name over two lines')
  log({ plugin: 'mcp', msg: `api_key=${halves.slice(0, 8)}` })
  log({ plugin: 'mcp', msg: `${halves.slice(8)} and more` })
  const ofEnvironment = plant('the environment of the daemon')
  log({ msg: `the agent printed ${ofEnvironment}` })
  const ofProvider = plant('the environment of a provider, under a harmless name')
  log({ msg: `the agent printed ${ofProvider}` })
  const ofAgent = plant('a file of an agent')
  log({ msg: `the agent printed ${ofAgent}` })
  const config = {
    mcp_servers: {
      files: {
        command: 'x',
        env: { PLAIN: ofProvider },
        headers: { 'x-other': plant('a header of the configuration') },
      },
    },
    providers: { own: { api_key: plant('a member of the configuration') } },
  }
  const home = await temporaryFolder('canaries')
  await mkdir(path.join(home, 'agents', 'ada'), { recursive: true })
  await writeFile(
    path.join(home, 'agents', 'ada', 'AGENT.md'),
    `---\nname: ada\ncommand: env SERVICE_TOKEN=${ofAgent} agent\n---\nhello\n`,
  )
  const hiding = definePlugin({
    name: 'hiding',
    version: '0.0.1',
    service: async () =>
      class {
        readonly hidden = new SecretSet()
        constructor(readonly kernel: PluginKernel) {
          for (const value of known) this.hidden.hide(value)
        }
      },
  }).surface({ secrets: [(self: { hidden: SecretSet }) => self.hidden] })
  const s = await scene({
    home,
    log: `${lines.join('\n')}\n`,
    more: [hiding],
    env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, MY_SERVICE_TOKEN: ofEnvironment },
  })
  // Keys of plugins that this daemon does not have.
  await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
  try {
    await s.emit(...events)
    const operation = await s.make()
    assert.is(operation.status, 'completed', operation.failure_reason)
    const files = await s.unpack(operation)
    const shown = shownIn(planted)
    for (const { value, where } of planted)
      for (const form of formsOf(value))
        assert.ok(shown(`before ${form} after`).includes(where), `a search for ${form}`)
    const found = [...files].flatMap(([name, text]) => shown(text).map(where => `${where} in ${name}`))
    assert.equal([...new Set(found)].slice(0, 40), [])
    // The lines themselves are there: what is tested is not their absence.
    const tail = (files.get('logs-tail.txt') as string).trimEnd().split('\n')
    assert.is(tail.length, lines.length)
    assert.match(files.get('logs-tail.txt') as string, /something else in between/)
  } finally {
    await s.close()
    await rm(home, { recursive: true, force: true })
  }
})

test.run()

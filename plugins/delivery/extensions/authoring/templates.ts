import { API_VERSION } from '../manifest/manifest.js'

/** Forms of a new extension. */
export const FORMS = ['static', 'plugin', 'typescript', 'process', 'bridge'] as const
export type Form = (typeof FORMS)[number]

export const isForm = (text: unknown): text is Form => (FORMS as readonly unknown[]).includes(text)

type Files = Readonly<Record<string, string>> & { readonly 'extension.toml': string }

/**
 * The files of a new, working extension by their relative paths.
 * @param packages versions by name of the development dependencies of a TypeScript extension
 */
export function filesOf(
  form: Exclude<Form, 'bridge'>,
  name: string,
  packages: Readonly<Record<string, string>>,
): Files {
  if (form === 'typescript') return typescriptFiles(name, packages)
  return { static: staticFiles, plugin: pluginFiles, process: processFiles }[form](name)
}

const head = (name: string) => `name = "${name}"\nversion = "0.1.0"\ndescription = "What it is for, in a line"\n`

/** A test that starts the extension in a kernel of its own and runs `body`. */
const testOf = (name: string, body: string) => `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startExtension } from 'svc/testing'

test('${name} works', async t => {
  const extension = await startExtension(import.meta.dirname)
  t.after(() => extension.close())
${body}})
`

function pluginFiles(name: string): Files {
  return {
    'extension.toml': `${head(name)}apiVersion = ${API_VERSION}\nmain = "main.js"\n`,
    'main.js': `import { cli, describe } from 'svc/kit'
import { definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'

class Greetings {
  constructor(kernel) {
    this.kernel = kernel
  }

  to(name) {
    return \`Hello, \${name}\`
  }
}

const route = routeOf(describe('Greetings'))

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  service: async () => Greetings,
}).surface({
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/${name}/greeting',
      summary: 'Greet somebody',
      query: v.object({ name: v.pipe(v.string(), v.minLength(1), v.maxLength(100)) }),
      replies: { 200: v.object({ text: v.string() }) },
      with: [cli('${name.replace('.', ' ')}', { args: [{ name: 'name', in: 'query' }], view: { text: 'text' } })],
      handle: (self, { query }) => ok({ text: self.to(query.name) }),
    }),
  ],
})
`,
    'main.test.mjs': testOf(
      name,
      `  const { status, body } = await extension.request('GET', '/api/ext/${name}/greeting?name=Ada')
  assert.deepEqual([status, body], [200, { text: 'Hello, Ada' }])
`,
    ),
  }
}

function typescriptFiles(name: string, packages: Readonly<Record<string, string>>): Files {
  const { 'extension.toml': manifest } = pluginFiles(name)
  const about = {
    private: true,
    type: 'module',
    scripts: { check: 'tsc', test: 'svc extension test', build: 'svc extension build' },
    devDependencies: packages,
  }
  return {
    'extension.toml': manifest,
    'package.json': `${JSON.stringify(about, undefined, 2)}\n`,
    'tsconfig.json': `{ "extends": "./.svc/tsconfig.json", "include": ["**/*.ts"] }\n`,
    '.gitignore': '/.svc\n/main.js\n/node_modules\n*.tar.gz\n',
    'main.ts': `import { cli, describe } from 'svc/kit'
import { definePlugin, ok, type PluginKernel, routeOf } from 'svc/plugin'
import * as v from 'valibot'

class Greetings {
  constructor(private readonly kernel: PluginKernel) {}

  to(name: string): string {
    this.kernel.log.debug('a greeting', { name })
    return \`Hello, \${name}\`
  }
}

const route = routeOf<Greetings>(describe('Greetings'))

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  service: async () => Greetings,
}).surface({
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/${name}/greeting',
      summary: 'Greet somebody',
      query: v.object({ name: v.pipe(v.string(), v.minLength(1), v.maxLength(100)) }),
      replies: { 200: v.object({ text: v.string() }) },
      with: [cli('${name.replace('.', ' ')}', { args: [{ name: 'name', in: 'query' }], view: { text: 'text' } })],
      handle: (self, { query }) => ok({ text: self.to(query.name) }),
    }),
  ],
})
`,
    'main.test.ts': testOf(
      name,
      `  const { status, body } = await extension.request('GET', '/api/ext/${name}/greeting?name=Ada')
  assert.deepEqual([status, body], [200, { text: 'Hello, Ada' }])
`,
    ),
  }
}

function processFiles(name: string): Files {
  return {
    'extension.toml': `${head(name)}
[capabilities]
provides = ["tool.provider"]

[subprocess]
command = "node"
args = ["{{config_dir}}/main.mjs"]

[[tools]]
id = "greet"
handler = "greet"
description = "Greets somebody"
input_schema = '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
risk = "read"
read_only = true
`,
    'main.mjs': `// A line of JSON in, a line of JSON out; standard error is the log, which svc extension logs shows.
import { createInterface } from 'node:readline'

const tools = { greet: ({ name }) => ({ text: \`Hello, \${name}\` }) }

const methods = {
  initialize: ({ protocol_version, extension, capabilities }) => ({
    protocol_version,
    extension_info: { name: extension.name, version: extension.version },
    accepted_capabilities: { provides: capabilities.provides, permissions: capabilities.granted_permissions },
    implemented_methods: Object.keys(methods).filter(method => method !== 'initialize'),
    supported_hook_events: [],
    supports: { health_check: true },
  }),
  health_check: () => ({ healthy: true }),
  shutdown() {
    // The answer goes out first.
    setImmediate(() => process.exit(0))
    return { acknowledged: true }
  },
  provide_tools: () => ({ tools: Object.keys(tools).map(id => ({ id, handler: id })) }),
  'tools/call': ({ tool, input }) => tools[tool](input),
}

createInterface({ input: process.stdin })
  .on('line', line => {
    const { id, method, params } = JSON.parse(line)
    let answer
    try {
      answer = { result: methods[method](params) }
    } catch (error) {
      answer = { error: { code: -32000, message: error.message } }
    }
    process.stdout.write(\`\${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\\n\`)
  })
  // The daemon is gone.
  .on('close', () => process.exit(0))
`,
    'main.test.mjs': testOf(
      name,
      `  assert.deepEqual(await extension.call('tools/call', { tool: 'greet', input: { name: 'Ada' } }), { text: 'Hello, Ada' })
`,
    ),
  }
}

function staticFiles(name: string): Files {
  return {
    'extension.toml': `${head(name)}\n[resources]\nbundles = ["bundles"]\n`,
    'bundles/start.toml': `name = "start"

[[profiles]]
name = "default"

[[profiles.agents]]
path = "agents/helper"

[[profiles.jobs]]
name = "daily"
agent = "helper"
prompt = "Say what is to be done today."
schedule = { mode = "cron", expr = "0 9 * * 1-5" }
enabled = false
`,
    'agents/helper/AGENT.md': '---\nname: helper\n---\nYou help the people who work in this workspace. Be brief.\n',
    'main.test.mjs': testOf(
      name,
      `  const { body } = await extension.request('GET', '/api/bundles/catalog')
  assert.deepEqual(
    body.bundles.map(bundle => bundle.bundle_name),
    ['start'],
  )
`,
    ),
  }
}

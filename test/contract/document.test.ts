import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createConfig, lint } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 as Ajv } from 'ajv/dist/2020.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withExamples } from '../../cli/document-examples.js'
import { inTree } from '../../plugins/index.js'
import { buildDocument } from '../../plugins/platform/openapi/document.js'
import { surfaceLines } from '../../scripts/reference/surface.js'

const here = path.dirname(fileURLToPath(import.meta.url))
const file = path.join(here, '../../schemas/openapi.json')
const surface = path.join(here, 'surface.txt')
/** Routes that have everything that the contract names. */
const completed = path.join(here, 'completed.txt')

const lines = () => readFileSync(surface, 'utf8').trim().split('\n')

/** Findings of the linter that stay, each with its reason. */
const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  // The daemon listens on this machine.
  'no-server-example.com': ['#/servers/0/url'],
  // Names of the contract.
  'no-ambiguous-paths': [
    ...['content', 'disable', 'enable', 'shadows'].map(part => `#/paths/~1api~1skills~1{name}~1${part}`),
    ...['approvals', 'invoke'].map(part => `#/paths/~1api~1tools~1{id}~1${part}`),
  ],
  // A channel is opened with 101.
  'operation-2xx-response': ['#/paths/~1api~1workspaces~1{workspace_id}~1window-manager~1stream/get/responses'],
}

/** Runs the checker; `contract` names one of the two contract files. */
function check(document: string, contract: string): { lacking: string[]; routes: number } {
  const argv = [
    path.join(here, 'check-contract.mjs'),
    document,
    '--contract',
    path.join(here, contract),
    '--only',
    completed,
  ]
  let text: string
  try {
    text = execFileSync(process.execPath, argv, { encoding: 'utf8' })
  } catch (error) {
    text = (error as { stdout: string }).stdout
  }
  const lines = text.trim().split('\n')
  return { lacking: lines.slice(0, -1), routes: Number(/routes \d+ of (\d+)/.exec(lines.at(-1) ?? '')?.[1]) }
}

test('schemas/openapi.json matches the current routes', async () => {
  const routes = inTree.flatMap(plugin => plugin.surface.routes ?? [])
  const document = await buildDocument(routes, '')
  withExamples(document as never)
  const { info: _, ...built } = document as { info: unknown }
  const { info: __, ...stored } = JSON.parse(readFileSync(file, 'utf8'))
  assert.equal(stored, JSON.parse(JSON.stringify(built)))
})

test('a change of the surface shows the operation whose line differs', () => {
  const now = surfaceLines(JSON.parse(readFileSync(file, 'utf8')))
    .trim()
    .split('\n')
  const before = lines()
  assert.equal(
    [
      ...now.filter(line => !before.includes(line)),
      ...before.filter(line => !now.includes(line)).map(line => `was: ${line}`),
    ],
    [],
    'npm run docs:reference writes test/contract/surface.txt',
  )
})

test('a line of the surface changes with the schemas that its operation refers to', () => {
  const document = JSON.parse(readFileSync(file, 'utf8'))
  const before = surfaceLines(document).split('\n')
  const { Error: error, ...schemas } = document.components.schemas
  const changed = surfaceLines({
    ...document,
    components: { schemas: { ...schemas, Error: { ...error, description: 'another' } } },
  }).split('\n')
  const differing = changed.filter((line, i) => line !== before[i])
  assert.ok(differing.length > 300, `${differing.length} lines`)
  const parts = (text: string) => text.split(' ')
  assert.ok(differing.every(line => !before.includes(line) && parts(line).length === 6))
})

test('the document is valid OpenAPI 3.1', async () => {
  const document = JSON.parse(readFileSync(file, 'utf8'))
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  assert.equal([valid, errors], [true, undefined])
  const broken = { ...document, components: { ...document.components, securitySchemes: { bearer: { type: 'key' } } } }
  assert.is((await new Validator().validate(broken)).valid, false)
})

test('each operation names its authentication by declared schemes', () => {
  const { security, paths, components } = JSON.parse(readFileSync(file, 'utf8'))
  const operations: [string, { security?: object[] }][] = Object.entries(paths).flatMap(([at, methods]) =>
    Object.entries(methods as object).map(([method, operation]) => [`${method} ${at}`, operation] as never),
  )
  for (const [name, operation] of [['all', { security }] as const, ...operations])
    for (const scheme of (operation.security ?? []).flatMap((one: object) => Object.keys(one)))
      assert.ok(scheme in components.securitySchemes, `${name}: ${scheme}`)
  const open = operations.filter(([, operation]) => operation.security).map(([name]) => name)
  assert.equal(
    open.sort(),
    [
      'get /api/mcp/oauth/callback',
      'get /api/status/identity',
      'get /console',
      'get /console/assets/{name}',
      'post /api/console/sessions',
      'post /api/webhooks/global/{endpoint}',
      'post /api/webhooks/workspaces/{workspace_id}/{endpoint}',
    ].sort(),
  )
})

interface Carrier {
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>
}
interface Exemplified {
  readonly paths: Readonly<
    Record<string, Record<string, { requestBody?: Carrier; responses: Readonly<Record<string, Carrier>> }>>
  >
}

/** JSON bodies and success replies of a document with their examples. */
const exemplified = ({ paths }: Exemplified) =>
  Object.entries(paths).flatMap(([at, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody, responses }]) => {
      const replies = Object.entries(responses).filter(([status]) => status.startsWith('2'))
      return [['body', requestBody] as const, ...replies].flatMap(([part, carrier]) => {
        const media = carrier?.content?.['application/json']
        return media ? [{ ...media, at: `${method.toUpperCase()} ${at} ${part}` }] : []
      })
    }),
  )

test('each JSON body and success reply has an example that matches its schema', () => {
  const document = JSON.parse(readFileSync(file, 'utf8'))
  const ajv = new Ajv({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', components: document.components })
  const compiled = new Map<string, ReturnType<Ajv['compile']>>()
  const compile = (text: string) => {
    const known = compiled.get(text) ?? ajv.compile(JSON.parse(text))
    compiled.set(text, known)
    return known
  }
  const judge = ({ at, schema, example }: { at: string; schema: object; example?: unknown }) => {
    if (example === undefined) return [`${at}: no example`]
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')
    const isValid = compile(text)
    return isValid(example) ? [] : [`${at}: ${ajv.errorsText(isValid.errors)}`]
  }
  const all = exemplified(document)
  assert.ok(all.length > 550, `${all.length}`)
  assert.equal(all.flatMap(judge), [])
  assert.is(judge({ at: 'a number', schema: { type: 'string' }, example: 7 }).length, 1)
})

test('a line of the surface does not depend on examples', () => {
  const document = JSON.parse(readFileSync(file, 'utf8'))
  const bare = JSON.parse(JSON.stringify(document), (_, value) => {
    if (value && typeof value === 'object' && 'schema' in value) delete value.example
    return value
  })
  assert.is.not(JSON.stringify(bare), JSON.stringify(document))
  assert.is(surfaceLines(bare), surfaceLines(document))
})

test('the document has every member of the contract for the complete routes', () => {
  const wanted = readFileSync(completed, 'utf8').trim().split('\n').length
  const first = check(file, 'contract.json')
  const second = check(file, 'contract-completing.json')
  assert.equal([...first.lacking, ...second.lacking], [])
  assert.is(first.routes + second.routes, wanted)
})

test('the checker finds a missing member', () => {
  const document = JSON.parse(readFileSync(file, 'utf8'))
  delete document.paths['/api/drain'].post
  const broken = path.join(mkdtempSync(path.join(os.tmpdir(), 'svc-document-')), 'openapi.json')
  writeFileSync(broken, JSON.stringify(document))
  const { lacking } = check(broken, 'contract.json')
  rmSync(path.dirname(broken), { recursive: true })
  assert.ok(lacking.includes('POST /api/drain: no such route'))
})

test('the document passes a linter', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const findings = (await lint({ ref: file, config })).map(
    ({ ruleId, message, location: [at] }) => [ruleId, at?.pointer ?? '', message] as const,
  )
  const isAccepted = ([rule, pointer]: (typeof findings)[number]) => ACCEPTED[rule]?.includes(pointer) ?? false
  assert.equal(
    findings.filter(finding => !isAccepted(finding)).map(finding => finding.join(' ')),
    [],
  )
  const met = (rule: string, pointer: string) => findings.some(([id, at]) => id === rule && at === pointer)
  const gone = Object.entries(ACCEPTED).flatMap(([rule, pointers]) => pointers.filter(pointer => !met(rule, pointer)))
  assert.equal(gone, [], 'what is accepted is still there')
})

test('the linter finds an invalid document', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'lint-'))
  try {
    const document = JSON.parse(readFileSync(file, 'utf8'))
    const [one, other] = ['/api/status', '/api/tasks']
    document.paths = { [one]: document.paths[one], [other]: document.paths[other] }
    document.paths[one].get.operationId = document.paths[other].get.operationId
    const broken = path.join(folder, 'openapi.json')
    writeFileSync(broken, JSON.stringify(document))
    const findings = await lint({ ref: broken, config: await createConfig({ extends: ['recommended'] }) })
    assert.ok(findings.some(({ ruleId }) => ruleId === 'operation-operationId-unique'))
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()

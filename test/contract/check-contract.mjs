#!/usr/bin/env node
// Compares an OpenAPI document with the contract data and lists what the document lacks: routes, query and header names,
// body and reply fields, enumeration values, status codes. More than the contract is fine. No dependencies.
// usage: check-contract.mjs OPENAPI.json|URL [--contract FILE] [--area TEXT] [--only FILE] [--summary] [--most N]
// --only FILE: just the routes in FILE, one `METHOD /path` a line
// exit status: 0 nothing lacking, 1 something lacking, 2 could not run
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const args = process.argv.slice(2)
const option = (name, fallback) => {
  const i = args.indexOf(name)
  return i < 0 ? fallback : args.splice(i, 2)[1]
}
const flag = name => {
  const i = args.indexOf(name)
  return i >= 0 && !!args.splice(i, 1)
}
const here = path.dirname(fileURLToPath(import.meta.url))
const contractFile = option('--contract', path.join(here, 'contract.json'))
const area = option('--area', '').toLowerCase()
const most = Number(option('--most', '200'))
const only = option('--only', '')
const summary = flag('--summary')
const usage =
  'usage: check-contract.mjs OPENAPI.json|URL [--contract FILE] [--area TEXT] [--only FILE] [--summary] [--most N]'
if (flag('--help')) {
  console.log(usage)
  process.exit(0)
}
const source = args[0]
if (!source) {
  console.error(usage)
  process.exit(2)
}

const load = async from =>
  JSON.parse(/^https?:/.test(from) ? await (await fetch(from)).text() : fs.readFileSync(from, 'utf8'))
let doc, contract
try {
  const base = load(path.join(here, 'contract.json'))
  ;[doc, contract] = await Promise.all([load(source), load(contractFile)])
  // contract-completing.json refers to schemas of contract.json
  contract.schemas = { ...(await base).schemas, ...contract.schemas }
} catch (error) {
  console.error(`cannot read: ${error.message}`)
  process.exit(2)
}

const plain = p => p.replace(/\/+$/, '').replace(/\{[^}]+\}|:[A-Za-z_]+/g, '{}')
const routes = new Map()
for (const [p, item] of Object.entries(doc.paths ?? {}))
  for (const [m, op] of Object.entries(item))
    if (op && typeof op === 'object')
      routes.set(`${m.toUpperCase()} ${plain(p)}`, { op, shared: item.parameters ?? [] })

const pointer = ref =>
  ref
    .replace(/^#\//, '')
    .split('/')
    .reduce((o, k) => o?.[k.replace(/~1/g, '/').replace(/~0/g, '~')], doc)
const resolveDoc = s => {
  for (let i = 0; s?.$ref && i < 20; i++) s = pointer(s.$ref)
  return s ?? {}
}
const resolveContract = s => {
  for (let i = 0; s?.$ref && i < 20; i++) s = contract.schemas[s.$ref.replace('svc:', '')]
  return s ?? {}
}
const variants = (s, resolve) => {
  s = resolve(s)
  const parts = [...(s.anyOf ?? []), ...(s.oneOf ?? []), ...(s.allOf ?? [])]
  return parts.length ? [s, ...parts.flatMap(x => variants(x, resolve))] : [s]
}

/** Facts of a schema as dotted paths: `jobs[].schedule.mode`, and `…=value` for enumeration values. */
function facts(schema, resolve, at = '', out = new Set(), depth = 0, trail = []) {
  if (depth > 14) return out
  for (const s of variants(schema, resolve)) {
    if (trail.includes(s)) continue
    const next = [...trail, s]
    for (const v of s.enum ?? (s.const !== undefined ? [s.const] : [])) if (v !== null) out.add(`${at}=${v}`)
    for (const [k, v] of Object.entries(s.properties ?? {})) {
      const p = at ? `${at}.${k}` : k
      out.add(p)
      facts(v, resolve, p, out, depth + 1, next)
    }
    if (s.items && !Array.isArray(s.items)) facts(s.items, resolve, `${at}[]`, out, depth + 1, next)
    if (s.additionalProperties && typeof s.additionalProperties === 'object')
      facts(s.additionalProperties, resolve, `${at}{}`, out, depth + 1, next)
  }
  return out
}

const wanted =
  only &&
  new Set(
    fs
      .readFileSync(only, 'utf8')
      .split('\n')
      .filter(l => /^[A-Z]+ \//.test(l))
      .map(l => {
        const [m, p] = l.trim().split(/\s+/)
        return `${m} ${plain(p)}`
      }),
  )
const lacking = [],
  count = { routes: 0, routesHave: 0, facts: 0, factsHave: 0, codes: 0, codesHave: 0 }
const byArea = new Map()
for (const r of contract.routes) {
  if (
    area &&
    !String(r.area ?? '')
      .toLowerCase()
      .includes(area)
  )
    continue
  if (wanted && !wanted.has(`${r.method} ${plain(r.path)}`)) continue
  const name = `${r.method} ${r.path}`,
    tally = byArea.get(r.area) ?? { want: 0, have: 0 }
  byArea.set(r.area, tally)
  const want = n => {
      count.facts += n
      tally.want += n
    },
    have = n => {
      count.factsHave += n
      tally.have += n
    }
  count.routes++
  const found = routes.get(`${r.method} ${plain(r.path)}`)
  if (!found) {
    lacking.push(`${name}: no such route`)
    tally.want++
    continue
  }
  count.routesHave++
  const { op } = found,
    parameters = [...found.shared, ...(op.parameters ?? [])].map(resolveDoc)
  for (const [where, list] of [
    ['query', r.query ?? []],
    ['header', r.headers ?? []],
  ])
    for (const q of list) {
      const p = parameters.find(x => x.in === where && x.name.toLowerCase() === q.name.toLowerCase())
      want(1)
      if (!p) {
        lacking.push(`${name}: ${where} ${q.name}`)
        continue
      }
      have(1)
      const values = new Set(
        variants(p.schema, resolveDoc)
          .flatMap(s => s.enum ?? (s.const !== undefined ? [s.const] : []))
          .map(String),
      )
      if (q.enum && values.size)
        for (const v of q.enum) {
          want(1)
          if (values.has(String(v))) have(1)
          else lacking.push(`${name}: ${where} ${q.name}=${v}`)
        }
    }
  const compare = (mine, theirs, label) => {
    const have_ = facts(theirs, resolveDoc),
      openAt = [...have_]
    for (const f of facts(mine, resolveContract)) {
      const [field, value] = f.split('=')
      if (value !== undefined && !openAt.some(x => x.startsWith(`${field}=`))) continue // a plain string there: values are not listed, not lacking
      want(1)
      if (have_.has(f)) have(1)
      else lacking.push(`${name}: ${label} ${f}`)
    }
  }
  if (r.body) compare(r.body, resolveDoc(resolveDoc(op.requestBody).content?.['application/json']?.schema), 'body')
  for (const [code, schema] of Object.entries(r.responses ?? {})) {
    if (code === '500' || code === '503') continue
    count.codes++
    const reply =
      op.responses?.[code] ?? (code[0] === '2' ? undefined : (op.responses?.default ?? op.responses?.[`${code[0]}XX`]))
    if (!reply) {
      lacking.push(`${name}: status ${code}`)
      continue
    }
    count.codesHave++
    if (!schema || (code[0] !== '2' && code !== '101')) continue
    const content = resolveDoc(reply).content ?? {},
      media = content['application/json'] ?? content['text/event-stream'] ?? Object.values(content)[0]
    if (r.contentTypes?.responses?.[code] && r.contentTypes.responses[code] !== 'application/json') continue
    compare(schema, resolveDoc(media?.schema), code)
  }
}
if (!summary) for (const l of lacking.slice(0, most)) console.log(l)
if (!summary && lacking.length > most) console.log(`(+${lacking.length - most} more)`)
if (summary) for (const [a, t] of byArea) if (t.have < t.want) console.log(`${a}: ${t.have} of ${t.want}`)
console.log(
  `routes ${count.routesHave} of ${count.routes}, fields and values ${count.factsHave} of ${count.facts}, status codes ${count.codesHave} of ${count.codes}`,
)
process.exit(lacking.length ? 1 : 0)

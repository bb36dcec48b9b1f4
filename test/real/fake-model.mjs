// Fake model server on 127.0.0.1: Anthropic messages, OpenAI chat-completions + responses, Gemini generateContent.
// The behaviour is scripted by the *prompt text* (newest directive wins), so a test drives it through the agent under test:
//   [[say:TEXT]]  reply with TEXT      [[tool:NAME {json}]]  call a tool the agent offered, then reply once its result comes
//   [[sleep:MS]]  delay first byte     [[drip:MS]]           delay between text pieces (for cancel tests)
//   [[forget]]    what stands before it in the same text does not count: an agent may send an unanswered prompt again
//   [[do:NAME {json}]] … several in a row: one call after the result of the one before, then the words; RUN_ID in the
//                 JSON stands for the first id of a run that the request has, MESSAGE_ID and PEER_ID for those of the
//                 message of another agent that the prompt has last
//   [[play:NAME]] what POST /__scripts {"NAME": "[[say:…]]…"} said it stands for: a script too long to be said by an agent
//   [[http:STATUS]] answer with an HTTP error            [[drop]] cut the socket mid-stream
// NAME may be a regexp alternation ("^(Bash|shell|run_shell_command|bash|exec_command)$"); first offered tool that matches is used.
// usage: node fake-model.mjs [port=18080] [logfile]      GET /__log gives what came in, GET /__bodies the newest requests whole

import fs from 'node:fs'
import http from 'node:http'

const port = +(process.argv[2] ?? 18080),
  logf = process.argv[3]
const log = []
/** The newest requests as they came. */
const bodies = []
const note = o => {
  log.push(o)
  if (log.length > 500) log.shift()
  if (logf) fs.appendFileSync(logf, `${JSON.stringify(o)}\n`)
}
const sleep = ms => new Promise(r => setTimeout(r, ms))
const flat = c =>
  c == null
    ? ''
    : typeof c === 'string'
      ? c
      : Array.isArray(c)
        ? c.map(flat).join('\n')
        : flat(c.text ?? c.content ?? c.parts ?? '')
/** Scripts by name. */
const scripts = {}
function directives(text) {
  const d = {}
  const forgotten = text.slice(text.lastIndexOf('[[forget]]') + 1)
  const current = forgotten.replace(/\[\[play:(\w+)\]\]/g, (_, name) => scripts[name] ?? '')
  for (const m of current.matchAll(/\[\[(say|tool|sleep|drip|http|drop)(?::([\s\S]*?))?\]\]/g)) d[m[1]] = m[2] ?? true
  d.steps = [...current.matchAll(/\[\[do:([\s\S]*?)\]\]/g)].map(m => m[1])
  return d
}
// Results of tools that stand behind the newest text with directives, where entries are told apart by two questions.
function resultsSince(entries, textOf, countOf) {
  const last = entries.findLastIndex(one => textOf(one).includes('[['))
  return entries.slice(last + 1).reduce((sum, one) => sum + countOf(one), 0)
}
// Each adapter: pull out {lastUserText, toolResultLast, tools[]} from the request body.
const users = {
  anthropic: b => {
    const ms = b.messages ?? []
    const isRes = m => Array.isArray(m.content) && m.content.some(c => c.type === 'tool_result')
    // Behind the result of a tool that was cut off stands the next prompt, in one message with it.
    const own = m => flat(Array.isArray(m.content) ? m.content.filter(c => c.type !== 'tool_result') : m.content)
    const last = ms.at(-1) ?? {}
    return {
      text: [...ms].filter(m => m.role === 'user').map(own),
      after: isRes(last) && !own(last).includes('[['),
      done: resultsSince(
        ms,
        m => (m.role === 'user' ? own(m) : ''),
        m => (Array.isArray(m.content) ? m.content.filter(c => c.type === 'tool_result').length : 0),
      ),
      tools: (b.tools ?? []).map(t => t.name),
    }
  },
  chat: b => ({
    text: (b.messages ?? []).filter(m => m.role === 'user').map(m => flat(m.content)),
    after: (b.messages ?? []).at(-1)?.role === 'tool',
    done: resultsSince(
      b.messages ?? [],
      m => (m.role === 'user' ? flat(m.content) : ''),
      m => Number(m.role === 'tool'),
    ),
    tools: (b.tools ?? []).map(t => t.function?.name),
  }),
  responses: b => {
    const it = typeof b.input === 'string' ? [{ role: 'user', content: b.input }] : (b.input ?? [])
    return {
      text: it.filter(m => m.role === 'user').map(m => flat(m.content)),
      after: /_output$/.test(it.at(-1)?.type ?? ''),
      done: resultsSince(
        it,
        m => (m.role === 'user' ? flat(m.content) : ''),
        m => Number(/_output$/.test(m.type ?? '')),
      ),
      // A group of tools has a name of its own, which a call of one of them gives beside the tool's.
      tools: (b.tools ?? []).flatMap(t => (t.tools ? t.tools.map(one => one.name) : [t.name ?? t.type])),
      groups: Object.fromEntries((b.tools ?? []).flatMap(t => (t.tools ?? []).map(one => [one.name, t.name]))),
    }
  },
  gemini: b => {
    const cs = b.contents ?? []
    return {
      text: cs.filter(c => c.role === 'user' && !c.parts?.some(p => p.functionResponse)).map(c => flat(c.parts)),
      after: !!cs.at(-1)?.parts?.some(p => p.functionResponse),
      done: resultsSince(
        cs,
        c => (c.role === 'user' && !c.parts?.some(p => p.functionResponse) ? flat(c.parts) : ''),
        c => c.parts?.filter(p => p.functionResponse).length ?? 0,
      ),
      tools: (b.tools ?? []).flatMap(t => t.functionDeclarations ?? []).map(f => f.name),
    }
  },
}
function plan(kind, b) {
  const u = users[kind](b)
  const src = u.text.findLast(t => t.includes('[[')) ?? ''
  const d = directives(src)
  const p = { d, text: d.say ?? 'Hello from the fake model.', call: null, u }
  const wanted = d.steps.length > 0 ? d.steps[u.done] : u.after ? undefined : d.tool
  if (wanted) {
    const run = /trun_[0-9a-f]{16}/.exec(JSON.stringify(b))?.[0] ?? ''
    const [, message = '', peer = ''] = [...src.matchAll(/Message (msg_\w+) from the peer (\S+)/g)].at(-1) ?? []
    const filled = { RUN_ID: run, MESSAGE_ID: message, PEER_ID: peer }
    const m = /^(\S+)\s*([\s\S]*)$/.exec(wanted.replaceAll(/RUN_ID|MESSAGE_ID|PEER_ID/g, name => filled[name]))
    let name
    try {
      name = u.tools.find(t => new RegExp(m[1]).test(t))
    } catch {
      /* not a regexp */
    }
    if (name)
      p.call = {
        name,
        ...(u.groups?.[name] && { namespace: u.groups[name] }),
        args: m[2] ? JSON.parse(m[2]) : {},
        id: `call_${Math.random().toString(36).slice(2, 10)}`,
      }
  }
  return p
}
const words = t => t.match(/\S+\s*/g) ?? [t]
const sse = (res, data, ev) => res.write(`${ev ? `event: ${ev}\n` : ''}data: ${JSON.stringify(data)}\n\n`)
const open = res => res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
const json = (res, o, s = 200) => {
  res.writeHead(s, { 'content-type': 'application/json' })
  res.end(JSON.stringify(o))
}
async function drip(p, res, f) {
  for (const w of words(p.text)) {
    if (res.destroyed) return
    f(w)
    if (p.d.drop) {
      res.destroy()
      return
    }
    if (p.d.drip) await sleep(+p.d.drip)
  }
}

async function anthropic(b, p, res) {
  const id = `msg_${Date.now()}`,
    base = {
      id,
      type: 'message',
      role: 'assistant',
      model: b.model,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    }
  const block = p.call
    ? { type: 'tool_use', id: p.call.id.replace('call', 'toolu'), name: p.call.name, input: p.call.args }
    : { type: 'text', text: p.text }
  const stop = p.call ? 'tool_use' : 'end_turn'
  if (!b.stream) return json(res, { ...base, content: [block], stop_reason: stop })
  open(res)
  const ev = o => sse(res, o, o.type)
  ev({ type: 'message_start', message: { ...base, content: [], stop_reason: null } })
  ev({
    type: 'content_block_start',
    index: 0,
    content_block: p.call ? { ...block, input: {} } : { type: 'text', text: '' },
  })
  if (p.call)
    ev({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: JSON.stringify(p.call.args) },
    })
  else await drip(p, res, w => ev({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: w } }))
  if (res.destroyed) return
  ev({ type: 'content_block_stop', index: 0 })
  ev({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 5 } })
  ev({ type: 'message_stop' })
  res.end()
}
async function chat(b, p, res) {
  const base = { id: `chatcmpl-${Date.now()}`, created: (Date.now() / 1000) | 0, model: b.model },
    usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const tc = p.call && [
      {
        index: 0,
        id: p.call.id,
        type: 'function',
        function: { name: p.call.name, arguments: JSON.stringify(p.call.args) },
      },
    ],
    fin = p.call ? 'tool_calls' : 'stop'
  if (!b.stream)
    return json(res, {
      ...base,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: p.call ? null : p.text, ...(tc && { tool_calls: tc }) },
          finish_reason: fin,
        },
      ],
      usage,
    })
  open(res)
  const ch = (delta, finish_reason = null) =>
    sse(res, { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })
  ch({ role: 'assistant', content: '' })
  if (tc) ch({ tool_calls: tc })
  else await drip(p, res, w => ch({ content: w }))
  if (res.destroyed) return
  ch({}, fin)
  sse(res, { ...base, object: 'chat.completion.chunk', choices: [], usage })
  res.end('data: [DONE]\n\n')
}
async function responses(b, p, res) {
  const id = `resp_${Date.now()}`,
    usage = {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 15,
    }
  const item = p.call
    ? {
        type: 'function_call',
        id: 'fc_1',
        call_id: p.call.id,
        name: p.call.name,
        ...(p.call.namespace && { namespace: p.call.namespace }),
        arguments: JSON.stringify(p.call.args),
        status: 'completed',
      }
    : {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: p.text, annotations: [] }],
      }
  const r = (status, output) => ({
    id,
    object: 'response',
    created_at: (Date.now() / 1000) | 0,
    status,
    model: b.model,
    output,
    usage: status === 'completed' ? usage : null,
    parallel_tool_calls: false,
    tools: [],
    error: null,
  })
  if (!b.stream) return json(res, r('completed', [item]))
  let n = 0
  open(res)
  const ev = o => sse(res, { ...o, sequence_number: n++ }, o.type)
  ev({ type: 'response.created', response: r('in_progress', []) })
  ev({
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...item, status: 'in_progress', ...(p.call ? { arguments: '' } : { content: [] }) },
  })
  if (!p.call) {
    ev({
      type: 'response.content_part.added',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    })
    await drip(p, res, w =>
      ev({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: w }),
    )
  } else {
    ev({ type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: item.arguments })
    ev({ type: 'response.function_call_arguments.done', item_id: 'fc_1', output_index: 0, arguments: item.arguments })
  }
  if (res.destroyed) return
  ev({ type: 'response.output_item.done', output_index: 0, item })
  ev({ type: 'response.completed', response: r('completed', [item]) })
  res.end()
}
async function gemini(b, p, res, stream) {
  const um = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
  const one = (part, fin) => ({
    candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...(fin && { finishReason: 'STOP' }) }],
    usageMetadata: um,
    modelVersion: 'fake',
  })
  // A request for JSON (routers, loop checks) gets an object with every required key.
  const rs = b.generationConfig?.responseJsonSchema ?? b.generationConfig?.responseSchema
  const text = rs
    ? JSON.stringify(
        Object.fromEntries(
          Object.entries(rs.properties ?? {}).map(([k, v]) => [
            k,
            v.enum?.[0] ?? (/number|integer/i.test(v.type) ? 0 : /bool/i.test(v.type) ? false : 'x'),
          ]),
        ),
      )
    : p.text
  if (!stream) return json(res, one({ text }, true))
  open(res)
  if (p.call) sse(res, one({ functionCall: { name: p.call.name, args: p.call.args } }, true))
  else {
    await drip({ ...p, text }, res, w => sse(res, one({ text: w })))
    if (res.destroyed) return
    sse(res, one({ text: '' }, true))
  }
  res.end()
}
http
  .createServer(async (req, res) => {
    const u = new URL(req.url, 'http://x'),
      path = u.pathname
    if (path === '/__log') return json(res, log)
    if (path === '/__bodies') return json(res, bodies)
    let raw = []
    for await (const c of req) raw.push(c)
    raw = Buffer.concat(raw)
    let b = {}
    try {
      b = JSON.parse(raw)
    } catch {
      /* not JSON */
    }
    const kind = /\/messages$/.test(path)
      ? 'anthropic'
      : /\/chat\/completions$/.test(path)
        ? 'chat'
        : /\/responses$/.test(path)
          ? 'responses'
          : /enerateContent$/.test(path)
            ? 'gemini'
            : null
    if (path === '/__scripts') return json(res, Object.assign(scripts, b))
    if (!kind || req.method !== 'POST') {
      note({ m: req.method, path, other: true })
      if (/count_tokens$/.test(path)) return json(res, { input_tokens: 10 })
      if (/countTokens$/.test(path)) return json(res, { totalTokens: 10 })
      if (/models$/.test(path))
        return json(res, {
          object: 'list',
          data: [
            {
              id: 'fake-model',
              object: 'model',
              type: 'model',
              display_name: 'Fake',
              created_at: '2025-01-01T00:00:00Z',
            },
          ],
          models: [],
        })
      return json(res, {}, req.method === 'HEAD' || path === '/' ? 200 : 404)
    }
    const p = plan(kind, b)
    bodies.push(raw.toString())
    if (bodies.length > 20) bodies.shift()
    note({
      m: req.method,
      path,
      kind,
      model: b.model,
      stream: b.stream,
      nMsgs: (b.messages ?? b.input ?? b.contents)?.length,
      after: p.u.after,
      ...(p.u.after && { result: JSON.stringify((b.messages ?? b.input ?? b.contents).at(-1)).slice(0, 600) }),
      directives: p.d,
      call: p.call?.name,
      tools: p.u.tools,
      auth: (req.headers.authorization ?? req.headers['x-api-key'] ?? req.headers['x-goog-api-key'] ?? '').slice(0, 14),
    })
    if (p.d.sleep) await sleep(+p.d.sleep)
    if (p.d.http)
      return json(
        res,
        { type: 'error', error: { type: 'api_error', message: 'scripted failure', code: +p.d.http } },
        +p.d.http,
      )
    if (kind === 'anthropic') return anthropic(b, p, res)
    if (kind === 'chat') return chat(b, p, res)
    if (kind === 'responses') return responses(b, p, res)
    return gemini(b, p, res, /stream/.test(path))
  })
  .listen(port, '127.0.0.1', function () {
    console.log(`fake-model http://127.0.0.1:${this.address().port}`)
  })

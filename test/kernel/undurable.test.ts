// proof: kills while the disk is slow
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../harness/kernel.js'
import { typescript } from '../harness/run-typescript.js'
import { until } from '../harness/until.js'

// Nothing that depends on an undurable transaction leaves the process.

/** Milliseconds in which a reply that tells of it too early would come. */
const LEAK_MS = 500
const daemon = fileURLToPath(new URL('fixtures/slow-disk-daemon.ts', import.meta.url))

async function start(home: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [...typescript, daemon, home, path.join(home, 'slow')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout!, 'data')
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** The status and body of a reply, or undefined when the connection broke before one came. */
function call(
  home: string,
  method: string,
  url: string,
  body?: unknown,
): Promise<{ status: number; body: string } | undefined> {
  return new Promise(resolve => {
    const request = http.request(
      {
        socketPath: path.join(home, 'daemon.sock'),
        method,
        path: url,
        agent: false,
        headers: { 'content-type': 'application/json' },
      },
      response => {
        let text = ''
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
        response.on('error', () => resolve(undefined))
      },
    )
    request.on('error', () => resolve(undefined))
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

const put = (home: string, id: string, expected = 0) =>
  call(home, 'PUT', `/api/resources/test.note/${id}`, {
    scope: { kind: 'global' },
    spec: { id },
    expected_version: expected,
  })
const read = (home: string, id: string) => call(home, 'GET', `/api/resources/test.note/${id}`)
const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
/** Resolves when a slow sync is under way. */
const begun = async (home: string) => {
  await until(() => existsSync(path.join(home, 'slow.begun')), 'a slow sync')
}

test('during a sync no reply shows what it covers: neither a write, a read, a list nor a refusal', async () => {
  const home = await temporaryFolder('undurable')
  let child = await start(home)
  await writeFile(path.join(home, 'slow'), '')
  const answered: string[] = []
  const watch = (name: string, reply: Promise<unknown>) => void reply.then(value => value && answered.push(name))
  watch('put', put(home, 'a'))
  await begun(home)
  watch('get', read(home, 'a'))
  watch('list', call(home, 'GET', '/api/resources/test.note'))
  watch('conflict', put(home, 'a'))
  await sleep(LEAK_MS)
  assert.equal(answered, [])
  await killed(child)
  assert.equal(answered, [])

  await rm(path.join(home, 'slow'))
  child = await start(home)
  const after = await read(home, 'a')
  assert.ok(after?.status === 200 || after?.status === 404, 'all of it or nothing')
  await killed(child)
  await rm(home, { recursive: true })
})

test('data shown in any reply survives a kill right after it', async () => {
  const home = await temporaryFolder('told')
  let child = await start(home)
  await writeFile(path.join(home, 'slow'), '')
  void put(home, 'b')
  await begun(home)
  const reply = read(home, 'b')
  await sleep(LEAK_MS)
  await rm(path.join(home, 'slow'))
  let answer = await reply
  while (answer?.status === 404) answer = await read(home, 'b')
  await killed(child)
  assert.is(answer?.status, 200)
  child = await start(home)
  assert.is((await read(home, 'b'))?.body, answer?.body)
  await killed(child)
  await rm(home, { recursive: true })
})

test.run()

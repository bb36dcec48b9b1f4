import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { managed, ScriptedDaemon } from './scripted-daemon.js'

const library = fileURLToPath(new URL('../../../packages/bridge-kit/python', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'svc-python-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

/** Counts its deliveries in a value. */
const program = join(folder, 'main.py')
writeFileSync(
  program,
  `import sys
sys.path.insert(0, ${JSON.stringify(library)})
from svc_bridge import IngestRefused, run_bridge

class Counting:
    def __init__(self, instance, host):
        self.host = host
        host.report("ready")

    def deliver(self, delivery):
        try:
            count = (self.host.get_value("count") or 0) + 1
            self.host.put_value("count", count)
        except IngestRefused as error:
            return {"status": "unknown", "message": error.code}
        return {"status": "delivered", "remote_message_id": str(count)}

    def targets(self):
        return []

    def close(self):
        pass

run_bridge("counting", "1.0.0", Counting)
`,
)

const pids = new Set<number>()
test.after.each(() => {
  for (const pid of pids) process.kill(pid)
})

function start(): ScriptedDaemon {
  const daemon = ScriptedDaemon.ofProgram(['python3', program])
  pids.add(daemon.pid)
  void daemon.ended.then(() => pids.delete(daemon.pid))
  return daemon
}

test('values of the Python library survive the process and belong to one instance', async () => {
  const first = start()
  await first.initialize([managed('a', {}), managed('b', {})])
  await first.until(() => (first.reports.length === 2 ? true : undefined), 'two instances')
  const busy = [new RpcError(-32003, 'wait', { code: 'rate_limited', retry_after_ms: 5 })]
  first.keep = () => {
    const error = busy.shift()
    if (error) throw error
  }
  const answerOf = async (daemon: ScriptedDaemon, id: string) => {
    const result = await daemon.say(id, {}, 'x')
    return result.status === 'delivered' ? result.remote_message_id : result
  }
  assert.is(await answerOf(first, 'a'), '1')
  assert.is(await answerOf(first, 'a'), '2')
  assert.is(await answerOf(first, 'b'), '1')
  await first.shutdown()
  const again = start()
  again.values = first.values
  await again.initialize([managed('a', {})])
  await again.status('ready')
  assert.is(await answerOf(again, 'a'), '3')
  again.keep = () => {
    throw new RpcError(-32000, 'full', { code: 'extension_state_too_large' })
  }
  const full = await again.say('a', {}, 'x')
  assert.is(full.status, 'unknown')
  await again.shutdown()
})

test.run()

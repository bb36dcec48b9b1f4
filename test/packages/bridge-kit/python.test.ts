import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { managed, ScriptedDaemon } from './scripted-daemon.js'

const folder = fileURLToPath(new URL('../../../packages/bridge-kit/python', import.meta.url))

/** An adapter in Python that hands over one event with files of so many bytes. */
const program = (...sizes: number[]) => `
import base64, sys, threading
sys.path.insert(0, ${JSON.stringify(folder)})
from svc_bridge import run_bridge

class Adapter:
    def __init__(self, instance, host):
        files = [{"name": str(at), "mime_type": "text/plain", "data": base64.b64encode(b"x" * size).decode()}
                 for at, size in enumerate(${JSON.stringify(sizes)})]
        event = {"idempotency_key": "k", "family": "message", "sender": {"id": "ann", "authenticated": True},
                 "peer_id": "ann", "text": "look", "addressed": True, "attachments": files}
        threading.Thread(target=lambda: (host.ingest(event), host.report("ready"))).start()

    def deliver(self, delivery):
        return {"status": "delivered"}

    def targets(self):
        return []

    def close(self):
        pass

run_bridge("probe", "1.0.0", Adapter)
`

let daemon: ScriptedDaemon | undefined
test.after(() => daemon?.shutdown())

test('files that exceed the line limit are named in the text by the Python library', async () => {
  const MiB = 1024 * 1024
  const source = program(4 * MiB, 4 * MiB, ...Array(11).fill(1))
  daemon = ScriptedDaemon.ofProgram(['python3', '-c', source])
  await daemon.initialize([managed('a', {})])
  await daemon.status('ready')
  const [event] = daemon.events
  assert.ok(Buffer.byteLength(JSON.stringify(event)) < 8 * MiB)
  assert.equal(
    event?.attachments?.map(({ name }) => name),
    ['0', '2', '3', '4', '5', '6', '7', '8', '9', '10'],
  )
  assert.match(event?.text ?? '', /^look\n\[The file 1 .*8 MiB\.\]\n\[The file 11 .*10 files\.\]\n\[The file 12 .*\]$/)
})

test.run()

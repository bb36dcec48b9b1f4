import { messageOf, runBridge } from '../../bridge-kit/src/index.js'
import { openDiscord } from './bridge.js'
import { manifest } from './manifest.js'

// The gateway library reconnects in promises that nothing awaits: a rejection must not end the other instances.
process.on('unhandledRejection', error => process.stderr.write(`not handled: ${messageOf(error)}\n`))

runBridge({ ...manifest, open: (instance, host) => openDiscord(instance, host) }).then(
  () => process.exit(0),
  error => {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exit(1)
  },
)

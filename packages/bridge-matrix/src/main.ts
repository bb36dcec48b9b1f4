import { messageOf, runBridge } from '../../bridge-kit/src/index.js'
import { openMatrix } from './bridge.js'
import { manifest } from './manifest.js'

runBridge({ ...manifest, open: (instance, host) => openMatrix(instance, host) }).then(
  () => process.exit(0),
  error => {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exit(1)
  },
)

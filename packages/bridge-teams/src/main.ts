import { messageOf, runBridge } from '../../bridge-kit/src/index.js'
import { openTeams } from './bridge.js'
import { manifest } from './manifest.js'

runBridge({ ...manifest, open: (instance, host) => openTeams(instance, host) }).then(
  () => process.exit(0),
  error => {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exit(1)
  },
)

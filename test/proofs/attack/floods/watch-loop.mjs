// Loaded into the daemon before its own code: at each SIGUSR2 the delay of its event loop since the last one, in milliseconds,
// goes into the file that $SVC_ATTACK_LOOP names.
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const file = process.env.SVC_ATTACK_LOOP
// The command that starts the daemon hands both variables on; children of the daemon are not to have them.
if (file !== undefined && process.argv[1]?.endsWith('daemon.cjs')) {
  delete process.env.NODE_OPTIONS
  delete process.env.SVC_ATTACK_LOOP
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('SIGUSR2', () => {
    const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map(ns => ns / 1e6)
    delay.reset()
    writeFileSync(`${file}.tmp`, JSON.stringify({ p50, p99, max }))
    renameSync(`${file}.tmp`, file)
  })
}

// Loaded into the daemon before its own code: at SIGUSR2 the longest gap since the last one goes into $SVC_BENCH_GAP.
import { renameSync, writeFileSync } from 'node:fs'
import { watchLoop } from './loop-gap.js'

const file = process.env.SVC_BENCH_GAP as string
const longest = watchLoop()
process.on('SIGUSR2', () => {
  writeFileSync(`${file}.tmp`, String(longest()))
  renameSync(`${file}.tmp`, file)
})

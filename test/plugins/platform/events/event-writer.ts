// Emits, moves and follows without end, telling each acknowledged event and each handled one, until it is killed.
import { setImmediate as turn } from 'node:timers/promises'
import { isGap } from '../../../../plugins/platform/events/api.js'
import { Lost, Made, openLog } from './event-log.js'

const { log, emit, plugin } = await openLog(process.argv[2] as string, { limits: { keepRows: 30, chunkRows: 10 } })
const say = (line: string) => process.stdout.write(`${line}\n`)
say(`last ${log.last}`)
plugin('follower').events.on({ cursor: 'main', type: '*' }, async event => {
  await turn()
  say(`${isGap(event) ? 'gap' : 'handled'} ${event.seq}`)
})
log.start()
for (;;) {
  const from = log.last + 1
  await emit(from % 3 === 0 ? Lost : Made, from, from + (from % 4), { subject: `s${from % 5}` })
  say(`acknowledged ${from + (from % 4)}`)
}

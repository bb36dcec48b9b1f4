import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { AuditHandlers } from './audit-process.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { ms, pairs } from './measure.js'

/** Processor time of a durable write of a record that the audit notes down, beside one that nobody notes down. */
export async function benchAudit({ program, temp, quick, report }: Context): Promise<void> {
  const open = async (name: string, withAudit: boolean) => {
    const home = path.join(temp, `audit-${name}`)
    mkdirSync(home, { mode: 0o700 })
    const child = Child.start<AuditHandlers>(program('audit-process'))
    await child.call('open', home, withAudit)
    return child
  }
  const [noted, bare] = [await open('on', true), await open('off', false)]
  const [rounds, count] = quick ? [5, 640] : [21, 1280]
  for (const child of [noted, bare]) await child.call('put', 4 * count)
  const { a, b, ratio } = await pairs(
    rounds,
    () => noted.call('put', count),
    () => bare.call('put', count),
  )
  for (const child of [noted, bare]) await child.kill()
  const what = 'processor time of a record written, its audit entry included'
  report.section('Audit', [{ what, ours: ms(a), baseline: `without the audit: ${ms(b)}`, ratio }])
}

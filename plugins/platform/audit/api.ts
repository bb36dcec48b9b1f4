/** `svc/plugins/audit`: the log of changes and their authors, in a hash chain that reveals alterations. */

import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, registry } from '../../../kernel/plugin.js'

export { namesOf } from './request-names.js'

/** Names of further events to audit, in addition to the families that always are. */
export const AuditedEvents = registry<string>('audit.events@1', v.string())

export const AuditErrors = defineErrors({
  why_not_found: { status: 404, message: 'nothing is recorded under this id', next: command('audit list') },
})

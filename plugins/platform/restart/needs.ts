import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Sessions } from '../../work/sessions/api.js'
import { Configuration } from '../configuration/api.js'
import { Events } from '../events/api.js'

export const needs = { host: Host, events: Events, sessions: maybe(Sessions), configuration: maybe(Configuration) }
export type K = KernelOf<typeof needs>

import { type KernelOf, maybe, Requests } from '../../../kernel/plugin.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Providers } from '../providers/api.js'

/** Dependencies of the plugin. */
export const needs = { providers: Providers, processes: Processes, request: Requests, extensions: maybe(Extensions) }
export type K = KernelOf<typeof needs>

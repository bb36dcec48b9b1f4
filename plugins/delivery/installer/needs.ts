import { DiskSpace, Host, type KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Processes } from '../../platform/processes/api.js'

/** Dependencies of the plugin. */
export const needs = { host: Host, disk: DiskSpace, events: Events, processes: Processes }
export type K = KernelOf<typeof needs>

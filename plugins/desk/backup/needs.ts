import { DiskSpace, Host, type KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Daemon } from '../daemon/api.js'

/** APIs that the plugin requires. */
export const needs = { host: Host, disk: DiskSpace, daemon: Daemon, events: Events }
export type K = KernelOf<typeof needs>

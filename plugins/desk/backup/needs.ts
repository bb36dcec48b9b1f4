import { DiskSpace, Host, type KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Daemon } from '../daemon/api.js'

/** What the plugin requires. */
export const needs = { host: Host, disk: DiskSpace, daemon: Daemon, events: Events }
export type K = KernelOf<typeof needs>

import type { KernelOf } from '../../../kernel/plugin.js'
import { Daemon } from '../../desk/daemon/api.js'

/** What the plugin requires. */
export const needs = { daemon: Daemon }
export type K = KernelOf<typeof needs>

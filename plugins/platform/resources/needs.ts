import type { KernelOf } from '../../../kernel/plugin.js'
import { Daemon } from '../../desk/daemon/api.js'

export const needs = { daemon: Daemon }
export type K = KernelOf<typeof needs>

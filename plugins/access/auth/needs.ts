import { Callers } from '../../../kernel/platform.js'
import type { KernelOf } from '../../../kernel/plugin.js'

/** What the plugin requires. */
export const needs = { callers: Callers }
export type K = KernelOf<typeof needs>

import { Host, type KernelOf, Requests } from '../../../kernel/plugin.js'

/** APIs that the plugin requires. */
export const needs = { request: Requests, host: Host }
export type K = KernelOf<typeof needs>

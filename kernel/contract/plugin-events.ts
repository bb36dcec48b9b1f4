import * as v from 'valibot'
import { event } from './event.js'

const pluginState = v.object({ name: v.string(), status: v.string(), error: v.optional(v.string()) })
/** A plugin began to run after the boot, also when it was loaded again. */
export const PluginLoaded = event('plugin.loaded', pluginState)
export const PluginFailed = event('plugin.failed', pluginState)
/** It runs no longer; when it is loaded again, it is told of at once afterwards. */
export const PluginUnloaded = event('plugin.unloaded', pluginState)

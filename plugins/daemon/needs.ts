import { DiskSpace, Host, maybe } from '../../kernel/plugin.js'
import { Configuration } from '../configuration/api.js'
import { Events } from '../events/api.js'
import { Reconcile } from '../reconcile/api.js'
import { Tcp } from '../tcp/api.js'

/** What the plugin requires. */
export const needs = {
  host: Host,
  disk: DiskSpace,
  events: Events,
  reconcile: Reconcile,
  configuration: maybe(Configuration),
  tcp: maybe(Tcp),
}

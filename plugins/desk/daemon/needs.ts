import { DiskSpace, Host, maybe } from '../../../kernel/plugin.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Tcp } from '../../platform/tcp/api.js'

/** APIs that the plugin requires. */
export const needs = {
  host: Host,
  disk: DiskSpace,
  events: Events,
  reconcile: Reconcile,
  configuration: maybe(Configuration),
  tcp: maybe(Tcp),
}

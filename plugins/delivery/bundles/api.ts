import { type Actor, token } from '../../../kernel/plugin.js'
import type {
  BundleActivation,
  BundleActivationPatch,
  BundleActivationRequest,
  BundleCatalogReply,
} from '../../../schemas/bundles.js'
import type { DeclaredChannel } from '../../../schemas/network.js'

export { BundleErrors } from './errors.js'
export { derivedId } from './ids.js'
export { ActivationKind, ActivationSpec, BundleKind, BundleSpec } from './kinds.js'

/** Bundles of extensions and their activations. */
export interface BundlesApi {
  /** The bundles of loaded extensions, once these are read. */
  shown(): Promise<BundleCatalogReply['bundles']>
  /** Shows the effects of an activation, and changes nothing. Throws the faults of `activate`, except the one for a missing confirmation. */
  preview(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation>
  /** Throws faults of 404, 409 and 422, see `BundleErrors`. */
  activate(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation>
  update(id: string, patch: BundleActivationPatch, actor: Actor): Promise<BundleActivation>
  deactivate(id: string, actor: Actor): Promise<void>
  /** Channels that active profiles declare, by extension, bundle, profile and name. A declaration alone makes no session take part. */
  declaredChannels(): readonly DeclaredChannel[]
}

export const Bundles = token<BundlesApi>('bundles@1')

/**
 * Scope of an activation request by a tool from within a workspace: that workspace, unless the request has the global
 * scope and no workspace.
 */
export function withCallerScope(
  request: BundleActivationRequest,
  callerWorkspace: string | undefined,
): BundleActivationRequest {
  if (callerWorkspace === undefined || (request.scope === 'global' && !request.workspace)) return request
  return { ...request, scope: 'workspace', workspace: request.workspace ?? callerWorkspace }
}

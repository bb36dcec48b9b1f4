import * as v from 'valibot'
import { kind } from '../../../kernel/plugin.js'

const text = v.string()
const names = v.optional(v.array(text), [])

/** Spec of a record of kind `bundle`: an entry of the catalog. Contents of profiles are read from the extension itself. */
export const BundleSpec = v.object({
  extension_name: v.pipe(text, v.minLength(1)),
  extension_version: v.optional(text),
  bundle_name: v.pipe(text, v.minLength(1)),
  description: v.optional(text),
  profiles: v.array(
    v.object({
      name: v.pipe(text, v.minLength(1)),
      description: v.optional(text),
      /** Hex SHA-256 of everything that the profile projects. */
      content_hash: text,
      channels: v.optional(v.array(v.object({ name: text, description: v.optional(text) })), []),
      primary_channel: v.optional(text),
      agents: names,
      layouts: names,
      jobs: names,
      triggers: names,
      bridges: names,
    }),
  ),
  network_requirement_digest: v.optional(text, ''),
})
export type BundleSpec = v.InferOutput<typeof BundleSpec>

export const BundleKind = kind<BundleSpec>({ name: 'bundle', spec: BundleSpec, maxBytes: 512 * 1024 })

/** Spec of a record of kind `bundle.activation`. */
export const ActivationSpec = v.object({
  extension_name: text,
  bundle_name: text,
  profile_name: text,
  spec_content_hash: v.optional(text, ''),
  network_requirement_digest: v.optional(text, ''),
  /** Always `operator`; absent while the network requirement is not confirmed. */
  confirmed_by: v.optional(text),
  confirmed_at: v.optional(text),
})
export type ActivationSpec = v.InferOutput<typeof ActivationSpec>

export const ActivationKind = kind<ActivationSpec>({
  name: 'bundle.activation',
  spec: ActivationSpec,
  maxBytes: 64 * 1024,
  writers: 'owner',
})

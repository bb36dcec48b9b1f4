/** `svc/plugins/openapi`: the document of everything that is routed. */
import { token } from '../../../kernel/plugin.js'

export interface OpenApiApi {
  /** The OpenAPI document of everything that is routed now. */
  document(): Promise<Record<string, unknown> & { openapi: string }>
}

export const OpenApi = token<OpenApiApi>('openapi@1')

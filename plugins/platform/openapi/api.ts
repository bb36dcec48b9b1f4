/** `svc/plugins/openapi`: the OpenAPI document of all routes. */
import { token } from '../../../kernel/plugin.js'

export interface OpenApiApi {
  /** The OpenAPI document of all current routes. */
  document(): Promise<Record<string, unknown> & { openapi: string }>
}

export const OpenApi = token<OpenApiApi>('openapi@1')

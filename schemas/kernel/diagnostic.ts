import * as v from 'valibot'
import { JsonMap } from './common.js'

/** One finding about the state of the service, and how to fix it. */
export const DiagnosticItem = v.object({
  id: v.string(),
  code: v.string(),
  category: v.string(),
  severity: v.string(),
  title: v.string(),
  message: v.string(),
  data_freshness: v.string(),
  doc_url: v.optional(v.string()),
  suggested_command: v.optional(v.string()),
  evidence: v.optional(JsonMap),
})
export type DiagnosticItem = v.InferOutput<typeof DiagnosticItem>

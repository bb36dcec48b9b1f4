export interface InjectRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface InjectReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

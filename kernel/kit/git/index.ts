/** The only way in which svc calls git. */
export * from './call.js'
export * from './find-repository.js'
export * from './with-repository.js'

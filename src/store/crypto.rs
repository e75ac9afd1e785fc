//! The hashes that S3 signatures need, for object_store.

use hmac::{Hmac, KeyInit, Mac};
use object_store::client::{CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer as PemSigner, SigningAlgorithm};
use sha2::{Digest, Sha256};

use super::fault::{Fault, FaultKind};

/// SHA-256 and its HMAC in plain Rust, the same on every target.
#[derive(Debug, Clone, Copy)]
pub struct RustCrypto;

fn unsupported(what: &str) -> object_store::Error {
    object_store::Error::NotImplemented { operation: what.to_owned(), implementer: "RustCrypto".to_owned() }
}

impl CryptoProvider for RustCrypto {
    fn digest(&self, algorithm: DigestAlgorithm) -> object_store::Result<Box<dyn DigestContext>> {
        match algorithm {
            DigestAlgorithm::Sha256 => Ok(Box::new(Hash { state: Sha256::new(), done: Vec::new() })),
            _ => Err(unsupported("a digest other than SHA-256")),
        }
    }

    fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> object_store::Result<Box<dyn HmacContext>> {
        match algorithm {
            DigestAlgorithm::Sha256 => {
                let state = Hmac::<Sha256>::new_from_slice(secret)
                    .map_err(|_| Fault::new(FaultKind::Aborted, "sign", "the key cannot be used"))?;
                Ok(Box::new(Keyed { state, done: Vec::new() }))
            }
            _ => Err(unsupported("a digest other than SHA-256")),
        }
    }

    fn sign(&self, _algorithm: SigningAlgorithm, _pem: &[u8]) -> object_store::Result<Box<dyn PemSigner>> {
        Err(unsupported("signing with a PEM key"))
    }
}

struct Hash {
    state: Sha256,
    done: Vec<u8>,
}

impl DigestContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.state.update(data);
    }

    fn finish(&mut self) -> object_store::Result<&[u8]> {
        self.done = self.state.finalize_reset().to_vec();
        Ok(&self.done)
    }
}

struct Keyed {
    state: Hmac<Sha256>,
    done: Vec<u8>,
}

impl HmacContext for Keyed {
    fn update(&mut self, data: &[u8]) {
        Mac::update(&mut self.state, data);
    }

    fn finish(&mut self) -> object_store::Result<&[u8]> {
        self.done = self.state.clone().finalize().into_bytes().to_vec();
        Ok(&self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn known_answers() {
        // FIPS 180-2 and RFC 4231 case 2.
        let mut digest = RustCrypto.digest(DigestAlgorithm::Sha256).unwrap();
        digest.update(b"ab");
        digest.update(b"c");
        assert_eq!(hex(digest.finish().unwrap()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mut mac = RustCrypto.hmac(DigestAlgorithm::Sha256, b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        assert_eq!(hex(mac.finish().unwrap()), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}

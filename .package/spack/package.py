# Spack recipe. As a repository of one package:
#   mkdir -p REPO/packages/paceline && cp package.py REPO/packages/paceline/ && printf "repo:\n  namespace: paceline\n" >REPO/repo.yaml
#   spack repo add REPO && spack install paceline
from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage  # since Spack 1.0; before, spack.package has it
except ImportError:
    pass


class Paceline(CMakePackage):
    """Predicts how fast a distributed DNN training job runs: a parallel discrete-event simulator."""

    license("Apache-2.0")

    # From a checkout: spack dev-build paceline@0.1.0, or spack install with `spack develop --path CHECKOUT paceline@0.1.0`.
    version("0.1.0")
    has_code = True

    variant("tests", default=False, description="Build the tests (needs cmocka)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("help2man", type="build")
    depends_on("mpi")
    depends_on("hdf5+mpi+hl")
    depends_on("simgrid@3.32:")
    depends_on("libfyaml")
    depends_on("xxhash")
    depends_on("expat")
    depends_on("zlib-api")
    depends_on("yajl")
    depends_on("random123")
    depends_on("protobuf-c")
    depends_on("sqlite")
    depends_on("openblas")
    depends_on("cmocka", when="+tests", type="build")

    generator("ninja")

    def cmake_args(self):
        return [self.define_from_variant("PACELINE_TESTS", "tests")]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """One simulation with the installed program and data."""
        paceline = Executable(join_path(self.prefix.bin, "paceline"))
        paceline("simulate", "--platform", "amp-homogeneous", "--model", "gpt2-345m", "--gbs", "32",
                 "--strategy", "pp=4,dp=4,tmp=1,mbs=1")
